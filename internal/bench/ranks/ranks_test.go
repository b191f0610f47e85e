package ranks

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/nvrtc/usages"
	"github.com/halox/halox/internal/testdevices"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Every kernel has a twin, and a lap of either is timed.
func TestLaps(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		o := &Options{What: whats(), Bytes: testdevices.Some(1, []int64{1000, 8}), Messages: []int64{64}, Vectors: testdevices.Some(1, []int64{1024, 8}), Compute: computes(), Staggered: []int{0, 1}, PerMultiprocessor: testdevices.Some(1, []int{2, 1}), Threads: 64, Budget: time.Microsecond}
		test.Check(t, o.Check())
		on := &bench.Machine{Session: &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}}
		r := &run{on, o, measure.Pace{First: 3, Max: 3, Batch: time.Microsecond}}
		devices := min(2, len(s.Devices))
		all := r.measurements()
		var open streams.Resources
		defer func() { test.Report(t, open.Close()) }()
		var names []string
		for name, l := range map[string]lap{newton: {Bytes: 32, Work: 17, Apart: 2, Span: (1 + chains) * 8 * 64}, copies: {Bytes: 32, Work: 48, Apart: 2, Span: 2 * 112}} {
			ranks := haloranks.Options{PerMultiprocessor: 2}
			all = append(all, measurement{run: r, what: overlaps, name: name, devices: devices, kernel: overlapping[name], ranks: ranks, lap: l})
		}
		for _, m := range all {
			us, ranks, err := m.round(t.Context(), m.lap, &open)
			if err != nil || us.Median <= 0 || ranks < 1 {
				t.Errorf("%s: %v us, %d ranks, %v", m.name, us.Median, ranks, err)
			}
			names = append(names, m.name)
		}
		slices.Sort(names)
		want := []string{"allreduce", "barrier of a device", "barrier of all devices", "broadcast", "channel", "channel one way", "copy", "newton", "notify", "one way", "packet", "put and notify", "reduce"}
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
		"got 12": {Vectors: []int64{8, 12}, Threads: 32},
		"got 33": {Threads: 33},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Both kinds of computing do what they say, whatever part of a round's work they are given.
func TestComputing(t *testing.T) {
	own := make([]byte, (1+chains)*8)
	compute := newtonOf(own)
	for range 2 {
		compute(40)
		for _, y := range streams.View[float64](own)[1:] {
			if math.Abs(y-math.Sqrt(0.5)) > 1e-15 {
				t.Errorf("%v is no inverse square root of 2", y)
			}
		}
	}
	own = []byte("abcdefgh........")
	compute = copyOf(own)
	for _, step := range []struct {
		work int64
		want string
	}{{3, "abc....."}, {3, "abcdef.."}, {2, "abcdefgh"}, {0, "abcdefgh"}, {3, "ABCdefgh"}, {6, "ABCDEFgh"}} {
		if step.want[0] == 'A' {
			copy(own, "ABCDEFGH")
		}
		if compute(step.work); string(own[8:]) != step.want {
			t.Errorf("%q, want %q", own[8:], step.want)
		}
	}
}

// A device exchanges and computes as much in all, however many ranks share a multiprocessor; what is left of a division
// is lost. Ranks keep their threads up to 1024 of a multiprocessor.
func TestLoads(t *testing.T) {
	for _, gpu := range []bool{false, true} {
		d := &streams.Device{}
		d.Cores, d.GoKernels = 132, !gpu
		r := &run{Machine: &bench.Machine{Session: &halo.Session{Devices: []*streams.Device{d}}}, options: &Options{Threads: 128}}
		for _, compute := range computes() {
			for _, total := range loads(compute) {
				for _, each := range []int{1, 2, 3, 4, 8, 32} {
					m := measurement{run: r, what: overlaps, ranks: haloranks.Options{PerMultiprocessor: each}}
					l := m.lapOf(total)
					n := int64(each)
					if l.Bytes%16 != 0 || l.Bytes*n > total.bytes || l.Bytes*n < total.bytes-16*n || l.Work*n > total.work || l.Work*n < total.work-16*n {
						t.Errorf("%+v by %d: %+v", total, each, l)
					}
					if compute == newton {
						continue
					}
					all := l.Span * n * 132
					if l.Work%16 != 0 || l.Span%32 != 0 || l.Span < 2*l.Work || all > 1<<30 || gpu && all < 1<<30-1024*n*132 || !gpu && l.Span != 2*l.Work {
						t.Errorf("%+v by %d: %+v", total, each, l)
					}
				}
			}
		}
		for each, want := range map[int]int{1: 128, 8: 128, 16: 64, 32: 32} {
			m := measurement{run: r, what: overlaps, ranks: haloranks.Options{PerMultiprocessor: each}}
			if got := m.threads(); got != want {
				t.Errorf("%d threads with %d ranks per multiprocessor, want %d", got, each, want)
			}
		}
	}
}

// All that a record says of overlap is there, for both kinds of computing.
func TestOverlap(t *testing.T) {
	s := testdevices.Host(t, 2)
	on := &bench.Machine{Session: &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}}
	o := &Options{Compute: computes(), Staggered: []int{0, 1}, PerMultiprocessor: []int{1, 2}, Threads: 64}
	r := &run{on, o, measure.Pace{First: 1, Max: 1, Batch: time.Microsecond}}
	tasks := r.overlapTasks()
	if len(tasks) != 2*4*3 {
		t.Fatalf("%d tasks", len(tasks))
	}
	for _, i := range []int{0, 4 + 1, 12, 12 + 4 + 1} { // the least of each kind, together and apart
		to := &bench.Recorder{Record: &results.Record{}}
		err := to.Measure(t.Context(), tasks[i:i+1])
		rows := to.Record.Rows
		if err != nil || len(rows) != 1 || rows[0].Median(results.Compute) <= 0 || rows[0].Median(results.Time) <= 0 || rows[0].Median(results.Step) <= 0 || math.IsNaN(rows[0].Median(results.Hidden)) {
			t.Fatalf("%v, %v", rows, err)
		}
		if row := rows[0]; row.Text("computing") != computes()[i/12] || row.Text("staggered") != fmt.Sprint(i%12%4) || row.Text("ranks") == "" {
			t.Errorf("%d: %v", i, row.Labels)
		}
	}
}

// The kernels compile for every generation of GPUs, and those of overlap for ranks of all sizes, see OVERLAP_BOUNDS.
func TestSource(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	if unsafe.Sizeof(lap{}) != 64 {
		t.Error("struct Lap has another size")
	}
	testdevices.Compile(t, pingPong.program(128, nil, nil).Source)
	testdevices.Compile(t, (*comparison).source(nil))
	for _, threads := range testdevices.Some(1, []int{128, 1024, 96}) {
		testdevices.Compile(t, overlapping[newton].program(threads, nil, nil).Source)
	}
}

// So many ranks of overlap fit on a multiprocessor as OVERLAP_BOUNDS says, with their variables in registers.
func TestOverlapDoesNotSpill(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
	testdevices.Once(t)
	c := test.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
	text := nvrtc.Source{Name: "overlap.cu", Text: overlapSource, Headers: []nvrtc.Header{{Name: "lap.cuh", Text: lapHeader}}}
	files, _ := filepath.Glob("../../../kernels/cu/*.cuh")
	if len(files) == 0 {
		t.Skip("SKIPPED: the CUDA sources are not here")
	}
	for _, file := range files {
		header := test.Must(os.ReadFile(file))(t)
		text.Headers = append(text.Headers, nvrtc.Header{Name: filepath.Base(file), Text: string(header)})
	}
	for _, arch := range testdevices.Some(1, []string{"sm_80", "sm_90"}) {
		options := []string{"--gpu-architecture=" + arch, "--std=c++17", "--fmad=false", "-default-device", fmt.Sprintf("--define-macro=RANK_TAGS=%d", haloranks.Tags), "--define-macro=THREADS=128"}
		all, err := usages.Of(c, "../../../.cache/usages", text, options)
		if err != nil || len(all) != 2 {
			t.Fatalf("%v, %v", all, err)
		}
		for _, u := range all {
			if u.Registers > 64 || u.SpillStores+u.SpillLoads+u.StackFrame != 0 {
				t.Errorf("%s: %+v", arch, u)
			}
		}
	}
}
