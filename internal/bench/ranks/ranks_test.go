package ranks

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/testdevices"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// Every kernel has a twin, and a lap of either is timed.
func TestLaps(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		o := &Options{What: Whats(), Bytes: testdevices.Some(1, []int64{1000, 8}), Messages: []int64{64}, Vectors: testdevices.Some(1, []int64{1024, 8}), Apart: []int{0, 1}, PerMultiprocessor: testdevices.Some(1, []int{2, 1}), Threads: 64, Budget: time.Microsecond}
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		on := &bench.Machine{Session: &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}}
		r := &run{on, o, timing.Pace{First: 3, Max: 3, Batch: time.Microsecond}}
		devices := min(2, len(s.Devices))
		all := r.measurements(devices)
		if devices == 2 {
			all = append(append(all, r.measurements(1)...), r.proxyMeasurements()...)
		}
		all = append(all, r.collectiveMeasurements(devices)...)
		var open streams.Resources
		defer func() {
			if err := open.Close(); err != nil {
				t.Error(err)
			}
		}()
		var names []string
		for _, m := range append(all, measurement{run: r, name: "overlap", devices: devices, kernel: overlap, ranks: haloranks.Options{PerMultiprocessor: 2}, lap: lap{Bytes: 32, Work: 5, Apart: 2}}) {
			us, ranks, err := m.round(t.Context(), m.lap, &open)
			if err != nil || us.Median <= 0 || ranks < 1 {
				t.Errorf("%s: %v us, %d ranks, %v", m.name, us.Median, ranks, err)
			}
			names = append(names, m.name)
		}
		slices.Sort(names)
		want := []string{"allreduce", "barrier of a device", "barrier of all devices", "broadcast", "channel", "channel one way", "notify", "one way", "overlap", "packet", "put and notify", "reduce"}
		if !s.Devices[0].GoKernels {
			want = append(want, "one way by proxy", "put and notify by proxy")
			slices.Sort(want)
		}
		if devices == 2 && !slices.Equal(slices.Compact(names), want) {
			t.Errorf("%q, want %q", names, want)
		}
	})
}

// What cannot be measured is refused.
func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"--vectors 12": {What: Whats(), Vectors: []int64{8, 12}},
		"--apart 2":    {What: Whats(), Apart: []int{2}},
		"what":         {What: []string{"all"}},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The kernels compile for every generation of GPUs.
func TestSource(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	if unsafe.Sizeof(lap{}) != 56 {
		t.Error("struct Lap has another size")
	}
	testdevices.Compile(t, pingPong.program(128, nil, nil).Source)
}
