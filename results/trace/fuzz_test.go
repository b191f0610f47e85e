package trace

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
)

// sample is a trace of two devices.
func sample() *Trace {
	us := time.Microsecond
	return &Trace{
		About: About{Solver: "heat", Size: []int{8, 8, 8}, Scheme: "assisted", Path: "peer"},
		Devices: []Device{
			{Name: "GPU 0", ClockError: us, Streams: []Stream{
				{Name: "compute", Operations: []Operation{{Name: "sweep", Category: Sweep, Begin: us, End: 9 * us, Step: 1}}},
				{Name: "send", Operations: []Operation{{Name: "copy", Category: Copy, Begin: 2 * us, End: 12 * us, Bytes: 64, With: "GPU 1"}}},
			}},
			{Name: "GPU 1", Streams: []Stream{{Name: "idle"}}},
		},
	}
}

// Whatever a file holds is a trace or an error. Of what was read no more is hidden than was
// communicated, and it is written so that it reads as the same trace.
func FuzzTrace(f *testing.F) {
	data, err := json.Marshal(sample().file())
	test.Check(f, err)
	f.Add(data)
	late := sample()
	late.Devices[0].Streams[0].Operations[0].End = longest + time.Microsecond
	if data, err = json.Marshal(late.file()); err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := decode(data)
		if (read == nil) == (err == nil) {
			t.Fatalf("a trace %v and an error %v", read, err)
		}
		if err != nil {
			return
		}
		if hidden, all := read.Hidden(); hidden < 0 || hidden > all {
			t.Fatalf("%v of %v are hidden", hidden, all)
		}
		_ = read.HiddenText()
		once := test.Must(json.Marshal(read.file()))(t)
		again, err := decode(once)
		if err != nil || !reflect.DeepEqual(read, again) {
			t.Fatalf("%v: wrote\n%+v\nand read\n%+v", err, read, again)
		}
	})
}
