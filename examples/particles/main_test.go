package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
)

func TestMain(m *testing.M) { exampletest.Main(m, "particles.cu") }

// methods calls f with a box for each method by which it can be stepped, ranks in several numbers.
func methods(t *testing.T, s *halo.Session, p problem, steps int, f func(t *testing.T, b *box, run func() error)) {
	t.Helper()
	o := compare.Options{Threads: 64}
	each := func(name string, method func(b *box) (compare.Method, error)) {
		t.Run(name, func(t *testing.T) {
			b, err := newBox(s, p)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}()
			run, err := method(b)
			if err != nil {
				t.Fatal(err)
			}
			f(t, b, func() error {
				_, err := run(t.Context(), steps)
				return err
			})
		})
	}
	for _, n := range []int{1, 3, p.segments + 1} {
		each(fmt.Sprintf("ranks=%d", n), func(b *box) (compare.Method, error) {
			w, err := ranks.New(s.Compiler, s.Devices, s.Links, b.program(o), ranks.Options{Ranks: n, Checks: n == 3, Limit: 20 * time.Second})
			if err != nil {
				return nil, err
			}
			b.open.Add(w)
			return b.byRanks(w), nil
		})
	}
	for _, name := range compare.Methods()[1:] {
		each(name, func(b *box) (compare.Method, error) {
			w, err := ranks.New(s.Compiler, s.Devices, s.Links, b.program(o), ranks.Options{Ranks: 1})
			if err != nil {
				return nil, err
			}
			b.open.Add(w)
			q, err := newByStreams(w, b, o.Threads)
			if err != nil {
				return nil, err
			}
			return q.Method(name), nil
		})
	}
}

// checked runs from a start and compares what comes out with what is wanted.
func checked(b *box, start, want []particle, run func() error) error {
	if err := b.load(start); err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	got, err := b.read()
	if err != nil {
		return err
	}
	if i := differ(got, want); i != -1 {
		return fmt.Errorf("particle %d of %d is not as in the reference, which has %d", i, len(got), len(want))
	}
	return lost(got, start)
}

// differ returns a particle of two lists that is not the same in both, or -1; -2 if they are not as long.
func differ(a, b []particle) int {
	if len(a) != len(b) {
		return -2
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// All methods give the bits of the reference on any number of devices, for any number of ranks.
func TestBits(t *testing.T) {
	const steps = 12
	cases := []struct {
		what      string
		problem   problem
		particles func(height float64) []particle
		crossing  bool // some particles go from device to device
	}{
		{"odd", problem{width: 7.5, segments: 5, capacity: 97, dt: 0.05}, func(h float64) []particle { return scattered(int(41*h), 7.5, h) }, true},
		{"one segment a device", problem{width: 3, segments: 1, capacity: 60, dt: 0.04}, func(h float64) []particle { return scattered(int(9*h), 3, h) }, true},
		{"no particles", problem{width: 3, segments: 3, capacity: 1, dt: 0.1}, func(float64) []particle { return nil }, false},
		{"one particle", problem{width: 3, segments: 2, capacity: 1, dt: 0.1}, func(h float64) []particle { return []particle{{1, h - 0.1, 1, -1, 7}} }, false},
		{"empty segments", problem{width: 20, segments: 7, capacity: 33, dt: 0.1}, func(h float64) []particle {
			all := scattered(int(h), 20, h)
			for i := range all {
				all[i].Vy *= 4
			}
			return all
		}, true},
		{"all to one side", problem{width: 6, segments: 3, capacity: 150, dt: 0.1}, func(h float64) []particle {
			all := scattered(int(8*h), 6, h)
			for i := range all {
				all[i].Vy += 5
			}
			return all
		}, true},
		{"all to the other side", problem{width: 6, segments: 3, capacity: 150, dt: 0.1}, func(h float64) []particle {
			all := scattered(int(8*h), 6, h)
			for i := range all {
				all[i].Vy -= 5
			}
			return all
		}, true},
		{"two at one place", problem{width: 3, segments: 2, capacity: 4, dt: 0.1}, func(h float64) []particle {
			return []particle{{1, 1, 0.5, -0.5, 3}, {1, 1, -0.5, 0.5, 2}, {1.25, 1, 0, 0, 9}}
		}, false},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			exampletest.EachSession(t, 4, func(t *testing.T, s *halo.Session) {
				n := len(s.Devices)
				height := int64(n * c.problem.segments)
				start := c.particles(float64(height))
				want := reference(start, c.problem.width, height, c.problem.dt, steps)
				if c.crossing && n > 1 && !crossed(start, want, c.problem.segments) {
					t.Fatal("no particle goes from device to device")
				}
				methods(t, s, c.problem, steps, func(t *testing.T, b *box, run func() error) {
					for range 2 { // the second time over what the first has left
						if err := checked(b, sorted(start), want, run); err != nil {
							t.Fatal(err)
						}
					}
				})
			})
		})
	}
}

// crossed reports whether a particle of two lists, in order of ids, is on different devices in them.
func crossed(a, b []particle, segments int) bool {
	device := func(p particle) int { return int(p.Y) / segments }
	for i := range a {
		if device(a[i]) != device(b[i]) {
			return true
		}
	}
	return false
}

// sorted returns particles in order of ids.
func sorted(all []particle) []particle { return reference(all, 1, 1, 1, 0) }

// Two runs of some steps give what one run of all gives.
func TestRunsInTurn(t *testing.T) {
	exampletest.EachSession(t, 3, func(t *testing.T, s *halo.Session) {
		p := problem{width: 7, segments: 3, capacity: 97, dt: 0.05}
		height := int64(len(s.Devices) * p.segments)
		start := scattered(int(20*height), p.width, float64(height))
		want := reference(start, p.width, height, p.dt, 10)
		methods(t, s, p, 5, func(t *testing.T, b *box, run func() error) {
			err := checked(b, start, want, func() error { return errors.Join(run(), run()) })
			if err != nil {
				t.Error(err)
			}
		})
	})
}

// A segment that gets more particles than it has room for is an error that says so, and so is a particle that moves
// further than to the next segment.
func TestRefused(t *testing.T) {
	exampletest.EachSession(t, 2, func(t *testing.T, s *halo.Session) {
		p := problem{width: 6, segments: 4, capacity: 12, dt: 0.1}
		height := len(s.Devices) * p.segments
		var crowd []particle // all of which go to one segment, 8 from each side
		for i := range 16 {
			side := float64(i % 2)
			crowd = append(crowd, particle{0.3 * float64(i), 1.8 + 1.4*side, 0, 4 - 8*side, int64(i)})
		}
		cases := []struct {
			what, want string
			start      []particle
		}{
			{"too many", "segment 2 got 16 particles, its capacity is 12", crowd},
			{"too fast", "particle 5 left segment 1 for one that is not beside it", []particle{{1, 1.5, 0, 16, 5}}},
			{"too fast downwards", fmt.Sprintf("particle 6 left segment %d for one that is not beside it", height-1), []particle{{1, float64(height) - 0.5, 0, -16, 6}}},
			{"no number", "particle 5 left segment 3 for one that is not beside it", []particle{{1, 3.5, 0, math.NaN(), 5}}},
		}
		for _, c := range cases {
			t.Run(c.what, func(t *testing.T) {
				methods(t, s, p, 1, func(t *testing.T, b *box, run func() error) {
					if err := b.load(c.start); err != nil {
						t.Fatal(err)
					}
					if err := run(); err != nil {
						t.Fatal(err)
					}
					if _, err := b.read(); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), c.want) {
						t.Errorf("error %v, want %q", err, c.want)
					}
				})
			})
		}
		b, err := newBox(s, p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range crowd {
			crowd[i].Y = 1.5
		}
		if err := b.load(crowd); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "segment 1 has more than its capacity of 12") {
			t.Errorf("loaded with error %v", err)
		}
	})
}

// The reference agrees with forces between all pairs, summed in another order, and conserves what the model does:
// momentum, where no particle touches a wall.
func TestReference(t *testing.T) {
	const width, height, dt, steps = 8.0, 8, 0.01, 20
	start := scattered(60, width-2, height-2)
	for i := range start {
		start[i].X, start[i].Y = start[i].X+1, start[i].Y+1
	}
	all := append([]particle(nil), start...)
	for range steps {
		var force [60][2]float64
		for i := range all {
			for k := range i {
				dx, dy := all[i].X-all[k].X, all[i].Y-all[k].Y
				if r := math.Hypot(dx, dy); r < 1 {
					for a, d := range []float64{dx, dy} {
						force[i][a] += (1/r - 1) * d
						force[k][a] -= (1/r - 1) * d
					}
				}
			}
		}
		for i := range all {
			p := &all[i]
			p.Vx, p.Vy = p.Vx+dt*force[i][0], p.Vy+dt*force[i][1]
			p.X, p.Y = p.X+dt*p.Vx, p.Y+dt*p.Vy
		}
	}
	got := reference(start, width, height, dt, steps)
	var before, after [2]float64
	moved := 0.0
	for i := range all {
		if math.Abs(got[i].X-all[i].X) > 1e-9 || math.Abs(got[i].Y-all[i].Y) > 1e-9 {
			t.Errorf("particle %d is at %v, %v by pairs", i, got[i], all[i])
		}
		before[0], before[1] = before[0]+start[i].Vx, before[1]+start[i].Vy
		after[0], after[1] = after[0]+got[i].Vx, after[1]+got[i].Vy
		moved = max(moved, math.Abs(got[i].Vx-start[i].Vx))
	}
	if math.Abs(after[0]-before[0])+math.Abs(after[1]-before[1]) > 1e-12 {
		t.Errorf("momentum %v became %v", before, after)
	}
	if moved < 0.01 {
		t.Error("no force acts")
	}
}

// Ranks, streams and graphs give the same bits on each backend, which are those of the reference.
func TestOneAnswer(t *testing.T) {
	sums := exampletest.Sums{}
	for _, c := range []struct {
		devices int
		flags   string
	}{
		{1, "--segments 3 --particles 60 --width 8 --iterations 7"},
		{3, "--segments 3 --particles 60 --width 8 --iterations 5 --ranks 2"},
		{2, "--segments 4 --particles 70 --width 8 --iterations 20 --per-multiprocessor 1 --threads 64"},
		{2, "--segments 3 --particles 60 --width 8 --iterations 6 --ranks 3 --pauses"},
	} {
		t.Run(fmt.Sprintf("devices=%d/%s", c.devices, strings.ReplaceAll(c.flags, " ", "_")), func(t *testing.T) {
			exampletest.Compare(t, newProgram, sums, c.devices, "--samples 2 "+c.flags)
		})
	}
}

// The reference tells a value that is wrong.
func TestCheck(t *testing.T) {
	s := testdevices.Host(t, 1)
	p := newProgram()
	o, err := p.Parse(strings.Fields("--particles 20 --segments 3 --width 5"), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.New(t.Context(), &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Reset(); err != nil {
		t.Fatal(err)
	}
	values, err := x.Values(0)
	if err != nil || len(values) != 80 {
		t.Fatalf("%d values, %v", len(values), err)
	}
	if _, err := x.Check(t.Context(), values, 0); err != nil {
		t.Error(err)
	}
	if _, err := x.Check(t.Context(), values, 1); !errors.Is(err, ErrRun) {
		t.Errorf("values of another step: %v", err)
	}
	values[4*13+3] += 1e-15
	if _, err := x.Check(t.Context(), values, 0); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "vy of particle 13 is") {
		t.Errorf("a wrong value: %v", err)
	}
	start := scattered(3, 5, 3)
	for what, got := range map[string][]particle{"particles are left of 3": start[:2], "particle 2 is not there": {start[0], start[1], start[1]}} {
		if err := lost(got, start); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

func TestRefusals(t *testing.T) {
	exampletest.Refused(t, newProgram, map[string]string{
		"--size huge":              "--size huge: want small, thesis or full",
		"--iterations 0":           "--iterations 0: want 1 to",
		"--width -1":               "--width -1: a number above 0",
		"--width NaN":              "--width NaN: a number above 0",
		"--segments -1":            "--segments -1: 1 to",
		"--particles -1":           "--particles -1: 1 to",
		"--capacity -1":            "--capacity -1: 0 to",
		"--dt 2":                   "--dt 2: a number above 0 up to 1",
		"--devices 1 --capacity 3": "more than its capacity of 3",
	})
	exampletest.Stopped(t, newProgram, "--segments 3 --particles 30 --width 8")
	s := settings{size: "thesis", particles: 7}
	if p := s.problem(); p.width != 416 || p.segments != 416 || p.particles != 7 {
		t.Errorf("%+v is not the size of the thesis with 7 particles", p)
	}
}

// The kernels compile for every generation of GPUs, without spills. Four ranks fit on a multiprocessor, of an H100 all 416 at the size of the
// thesis; on sm_100 three.
func TestSource(t *testing.T) {
	if p := (problem{segments: 3, particles: 100}); p.room() != 160 {
		t.Errorf("a segment has room for %d", p.room())
	}
	exampletest.Compile(t, source(128), 128, map[string]int{"sm_100": 168})
}
