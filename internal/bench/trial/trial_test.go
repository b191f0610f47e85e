package trial

import (
	"testing"

	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// A job that copies is correct; one that does nothing, writes outside its range or writes another byte
// is detected, whether the CPU can access the memory or not.
func TestTrial(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		d := set.Devices[0]
		var open streams.Resources
		defer func() { test.Report(t, open.Close()) }()
		s := test.Must(d.NewStream(streams.Normal))(t)
		open.Add(s)
		type alloc = func(int64) (*streams.Memory, error)
		for _, in := range []struct{ from, to alloc }{{d.Alloc, d.Alloc}, {d.AllocPinned, d.Alloc}, {d.Alloc, d.AllocPinned}} {
			src, err1 := in.from(100)
			dst, err2 := in.to(120)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			open.Add(src)
			open.Add(dst)
			trial := test.Must(New(s, s, dst.All(), src.All(), &open, func(dst, src []byte) error { copy(dst[10:], src); return nil }))(t)
			right := func(s *streams.Stream) error { return s.Copy(dst.Span(10, 100), src.All()) }
			test.Report(t, trial.Do(right))
			for says, wrong := range map[string]func(*streams.Stream) error{
				"byte 10 of 120": func(*streams.Stream) error { return nil },
				"byte 9 of 120":  func(s *streams.Stream) error { return s.Copy(dst.Span(9, 100), src.All()) },
				"byte 109 of":    func(s *streams.Stream) error { return s.Copy(dst.Span(10, 99), src.Span(0, 99)) },
			} {
				test.Says(t, trial.Do(wrong), says)
			}
			test.Report(t, s.Sync(timing.Limit))
		}
	})
}

// What spans too much is not compared.
func TestTooLargeToCompare(t *testing.T) {
	s := streams.Span{Length: maxBytes + 1}
	if trial, err := New(nil, nil, s, s, nil, nil); trial != nil || err != nil {
		t.Errorf("%v, %v", trial, err)
	}
}
