package compare

import (
	"context"
	"errors"
	"flag"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// fake is a problem whose methods give what they are told.
type fake struct {
	values map[string][]float64
	took   map[string]time.Duration
	check  error
	now    string
	model  float64
	resets int
}

func (*fake) String() string { return "a fake" }
func (f *fake) Method(name string) (Method, error) {
	f.now = name
	return func(_ context.Context, iterations int) (time.Duration, error) {
		return time.Duration(iterations) * f.took[name], nil
	}, nil
}
func (f *fake) Reset() error                  { f.resets++; return nil }
func (f *fake) Values(int) ([]float64, error) { return f.values[f.now], nil }
func (f *fake) Close() error                  { return nil }
func (f *fake) Ranks() int                    { return 7 }
func (f *fake) Model() float64                { return f.model }
func (f *fake) Check(context.Context, []float64, int) (string, error) {
	return "checked", f.check
}

// Methods are compared with the reference and bit for bit with each other; the table has what an iteration takes.
func TestRun(t *testing.T) {
	same := map[string][]float64{Ranks: {1, 2}, queued: {1, 2}, Graphs: {1, 2}}
	took := map[string]time.Duration{Ranks: 10 * time.Microsecond, queued: 25 * time.Microsecond, Graphs: 8 * time.Microsecond}
	for name, c := range map[string]struct {
		fake fake
		want string
	}{
		"alike":       {fake{values: same, took: took}, ""},
		"a zero":      {fake{values: map[string][]float64{Ranks: {0}, queued: {0}, Graphs: {math.Copysign(0, -1)}}, took: took}, "ranks and graph differ: value 0 is 0 and -0"},
		"a value":     {fake{values: map[string][]float64{Ranks: {1, 2}, queued: {1, 3}, Graphs: {1, 2}}, took: took}, "ranks and streams differ: value 1 is 2 and 3"},
		"a length":    {fake{values: map[string][]float64{Ranks: {1, 2}, queued: {1}, Graphs: {1, 2}}, took: took}, "2 values and 1"},
		"a reference": {fake{values: same, took: took, check: errors.New("it is wrong")}, "ranks: it is wrong"},
	} {
		p := Program{Name: "fake", Flags: func(*flag.FlagSet) {}, Check: func(Options) error { return nil }, New: func(context.Context, *halo.Session, Options) (Problem, error) {
			return &c.fake, nil
		}}
		o, err := p.Parse([]string{"--samples", "4", "--iterations", "3"}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		devices, err := streams.HostPlatform(1).Open()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		_, err = p.Run(t.Context(), &halo.Session{Devices: devices}, o, &out)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: the error is %v, want %q", name, err, c.want)
			}
		} else if err != nil {
			t.Error(err)
		}
		if name == "alike" {
			for _, line := range [][]string{{"ranks", "1", "7", "10.0", "10.0", "10.0", "1.00"}, {"streams", "1", "-", "25.0", "25.0", "25.0", "2.50"}, {"graph", "1", "-", "8.00", "8.00", "8.00", "0.80"}, {"checked"}} {
				if !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(s string) bool { return slices.Equal(strings.Fields(s), line) }) {
					t.Errorf("no line %q in\n%s", line, out.String())
				}
			}
			o.CSV = true
			var rows strings.Builder
			if _, err := p.Run(t.Context(), &halo.Session{Devices: devices}, o, &rows); err != nil || !strings.HasPrefix(rows.String(), "method,devices,ranks a device,iteration [us],least,most,over ranks\nranks,1,7,10.0,10.0,10.0,1.00\nstreams,1,-,25.0,") {
				t.Errorf("as CSV, %v:\n%s", err, rows.String())
			}
			if c.fake.resets != 2*3*5 {
				t.Errorf("%d resets of 4 samples and one before, of 3 methods, twice", c.fake.resets)
			}
		}
		if err := streams.CloseAll(devices); err != nil {
			t.Error(err)
		}
	}
}

// With --scaling there are rows for each number of devices that a program scales to, with the efficiency; a model has
// a column. Without --verify nothing is checked.
func TestScaling(t *testing.T) {
	devices, err := streams.HostPlatform(4).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer streams.CloseAll(devices)
	for name, c := range map[string]struct {
		scales func(int) bool
		flags  string
		want   string
	}{
		"all":           {nil, "--scaling", "ranks,1,7,10.0,10.0,10.0,1.00,6.50,1.00\nranks,2,7,20.0,20.0,20.0,1.00,6.50,0.50\nranks,3,7,30.0,30.0,30.0,1.00,6.50,0.33\nranks,4,7,40.0,40.0,40.0,1.00,6.50,0.25\n"},
		"squares":       {func(n int) bool { return n == 1 || n == 4 }, "--scaling", "ranks,1,7,10.0,10.0,10.0,1.00,6.50,1.00\nranks,4,7,40.0,40.0,40.0,1.00,6.50,0.25\n"},
		"not the last":  {func(n int) bool { return n < 3 }, "--scaling", "ranks,1,7,10.0,10.0,10.0,1.00,6.50,1.00\nranks,2,7,20.0,20.0,20.0,1.00,6.50,0.50\n"},
		"no efficiency": {nil, "", "ranks,4,7,40.0,40.0,40.0,1.00,6.50\n"},
	} {
		p := Program{Name: "fake", Iterations: 8, Scales: c.scales, Flags: func(*flag.FlagSet) {}, Check: func(Options) error { return nil }, New: func(_ context.Context, s *halo.Session, _ Options) (Problem, error) {
			took := time.Duration(len(s.Devices)) * 10 * time.Microsecond
			return &fake{values: map[string][]float64{Ranks: {}}, took: map[string]time.Duration{Ranks: took}, model: 6.5, check: errors.New("never looked at")}, nil
		}}
		o, err := p.Parse(strings.Fields("--csv --verify=false --method ranks "+c.flags), io.Discard)
		if err != nil || o.Iterations != 8 {
			t.Fatalf("%d iterations, %v", o.Iterations, err)
		}
		var out strings.Builder
		if _, err := p.Run(t.Context(), &halo.Session{Devices: devices}, o, &out); err != nil || !strings.HasSuffix(out.String(), c.want) || strings.Count(out.String(), "\n") != 1+strings.Count(c.want, "\n") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

// A graph makes as many iterations as divide those of a run, and begins with an even or an odd one as the run does.
func TestBatches(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 7: 7, 9: 9, 10: 10, 11: 1, 12: 6, 20: 10, 21: 7, 100: 10} {
		if got := batchOf(n); got != want {
			t.Errorf("%d iterations in graphs of %d, want %d", n, got, want)
		}
	}
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer streams.CloseAll(devices)
	var q Queue
	defer q.Close()
	s, err := q.NewStream(devices[0])
	if err != nil {
		t.Fatal(err)
	}
	var made []int
	var kernels [2]*streams.Kernel
	for parity := range kernels {
		if kernels[parity], err = devices[0].NewKernel(streams.KernelSpec{Name: "parity", Run: func() { made = append(made, parity) }}); err != nil {
			t.Fatal(err)
		}
		defer kernels[parity].Close()
	}
	q.Iteration = func(parity int) error { return s.Launch(kernels[parity]) }
	for _, n := range []int{1, 3, 20, 21, 22, 35, 3} {
		made = nil
		if _, err := q.Method(Graphs)(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		for i, parity := range made {
			if parity != i%2 {
				t.Fatalf("%d iterations have parities %v", n, made)
			}
		}
		if len(made) != n {
			t.Errorf("%d iterations of %d", len(made), n)
		}
	}
}

// What is filled in pieces and by several threads is read back, whole.
func TestFill(t *testing.T) {
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer streams.CloseAll(devices)
	const n = chunk/8 + 12345
	m, err := devices[0].Alloc(8 * (n + 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := Fill(m.Span(8, 8*n), func(to []int64, first int64) {
		for i := range to {
			to[i] = 3*(first+int64(i)) + 1
		}
	}); err != nil {
		t.Fatal(err)
	}
	got, err := Read[int64](m.Span(8, 8*n))
	if err != nil || len(got) != n {
		t.Fatalf("%d of %d values, %v", len(got), n, err)
	}
	for i, v := range got {
		if v != 3*int64(i)+1 {
			t.Fatalf("value %d is %d", i, v)
		}
	}
}

// Parts are disjoint and all, and a block's sum is that of its threads.
func TestSums(t *testing.T) {
	for _, n := range []int64{0, 1, 7, 1000} {
		for _, parts := range []int64{1, 3, 8} {
			for i := range parts {
				if lo, hi := Part(n, parts, i), Part(n, parts, i+1); lo > hi || hi-lo > n/parts+1 {
					t.Errorf("part %d of %d of %d is [%d, %d)", i, parts, n, lo, hi)
				}
			}
			if Part(n, parts, 0) != 0 || Part(n, parts, parts) != n {
				t.Errorf("%d parts of %d", parts, n)
			}
		}
	}
	for _, threads := range []int{32, 96, 512} {
		values, want := make([]float64, threads), 0.0
		for i := range values {
			values[i] = float64(i*i - 100)
			want += values[i]
		}
		if got := BlockSum(values); got != want {
			t.Errorf("%d threads: %v, want %v", threads, got, want)
		}
	}
}
