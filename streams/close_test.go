package streams

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Memory is freed after the streams that may use it: that of devices that come earlier, and what was added to Resources
// after a stream.
func TestCloseFreesNothingWhileStreamsRun(t *testing.T) {
	for name, closeAll := range map[string]func(d []*Device, s *Stream, m *Memory) error{
		"devices": func(d []*Device, _ *Stream, _ *Memory) error { return CloseAll(d) },
		"resources": func(d []*Device, s *Stream, m *Memory) error {
			made := Resources{s, m}
			return errors.Join(made.Close(), CloseAll(d))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := hostDevices(t, 2)
			m := must(d[0].Alloc(8))(t)
			s := must(d[1].NewStream(Normal))(t)
			slow := must(d[1].NewKernel(KernelSpec{Name: "slow", Run: func() {
				time.Sleep(30 * time.Millisecond)
				if m.Bytes() == nil {
					panic("its memory is gone")
				}
			}}))(t)
			check(t, s.Launch(slow), closeAll(d, s, m))
			if m.Bytes() != nil {
				t.Error("the memory was not freed")
			}
		})
	}
}

func TestAHangingStreamKillsItsDevice(t *testing.T) {
	d := hostDevices(t, 1)[0]
	d.SetGrace(30 * time.Millisecond)
	m := must(d.Alloc(8))(t)
	s := must(d.NewStream(Normal))(t)
	end := make(chan struct{})
	defer close(end)
	check(t, s.Launch(must(d.NewKernel(KernelSpec{Name: "endless", Run: func() { <-end }}))(t)))
	err := s.Close()
	if err == nil || !strings.Contains(err.Error(), "device host 0: close a stream: it hangs: not done after 30ms") {
		t.Errorf("got %v", err)
	}
	if _, again := d.NewEvent(); again != err {
		t.Errorf("later calls say %v", again)
	}
	check(t, m.Close(), d.Close())
	if m.Bytes() == nil {
		t.Error("memory was freed that the stream may use")
	}
}
