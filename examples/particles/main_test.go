package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

func TestMain(m *testing.M) { exampletest.Main(m, "particles.cu") }

var tests = exampletest.Ranks{New: newProgram}

// eachBox calls f with a box on each number of devices, by several numbers of device ranks.
func eachBox(t *testing.T, devices int, p problem, start func(height float64) []particle, f func(t *testing.T, x *box)) {
	for _, n := range []int{1, 3, p.segments + 1} {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			exampletest.Each(t, devices, n, func(t *testing.T, s *example.Setup) {
				s.Options.Checks = n == 3
				x := test.Must(newBox(s, p, start(float64(len(s.Devices)*p.segments))))(t)
				test.Check(t, x.Reset())
				f(t, x)
			})
		})
	}
}

// Device ranks give the bits of the reference on any number of devices. Two runs give what one run of all steps gives.
func TestBits(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
	pushed := func(n int, width, speed float64) func(h float64) []particle {
		return func(h float64) []particle {
			all := scattered(n*int(h), width, h)
			for i := range all {
				all[i].Vy += speed
			}
			return all
		}
	}
	for _, c := range []struct {
		what     string
		problem  problem
		start    func(height float64) []particle
		crossing bool // some particles go from device to device
	}{
		{"odd", problem{width: 7.5, segments: 5, capacity: 97, dt: 0.05}, pushed(41, 7.5, 0), true},
		{"one segment per device", problem{width: 3, segments: 1, capacity: 60, dt: 0.04}, pushed(9, 3, 0), true},
		{"no particles", problem{width: 3, segments: 3, capacity: 1, dt: 0.1}, pushed(0, 3, 0), false},
		{"one particle", problem{width: 3, segments: 2, capacity: 1, dt: 0.1},
			func(h float64) []particle { return []particle{{1, h - 0.1, 1, -1, 0}} }, false},
		{"empty segments", problem{width: 20, segments: 7, capacity: 33, dt: 0.1}, pushed(1, 20, 3), true},
		{"all upwards", problem{width: 6, segments: 3, capacity: 150, dt: 0.1}, pushed(8, 6, 5), true},
		{"all downwards", problem{width: 6, segments: 3, capacity: 150, dt: 0.1}, pushed(8, 6, -5), true},
		{"two at one place", problem{width: 3, segments: 2, capacity: 4, dt: 0.1}, func(h float64) []particle {
			return []particle{{1, 1, -0.5, 0.5, 0}, {1, 1, 0.5, -0.5, 1}, {1.25, 1, 0, 0, 2}}
		}, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			eachBox(t, 4, c.problem, c.start, func(t *testing.T, x *box) {
				height := x.parts[0].All
				if n := len(x.parts); c.crossing && n > 1 {
					end := reference(x.start, c.problem.width, height, c.problem.dt, 12)
					crossed := false
					for i, p := range end {
						crossed = crossed || int(p.Y)/c.problem.segments != int(x.start[i].Y)/c.problem.segments
					}
					if !crossed {
						t.Fatal("no particle goes from device to device")
					}
				}
				for steps := 6; steps <= 12; steps += 6 {
					test.Must(x.Run(t.Context(), 6))(t)
					values := test.Must(x.Values(steps))(t)
					test.Must(x.Check(values, steps))(t)
				}
			})
		})
	}
}

// It is an error if a segment gets more particles than its capacity, or a particle moves further than to the next one.
func TestFails(t *testing.T) {
	p := problem{width: 6, segments: 4, capacity: 12, dt: 0.1}
	crowd := func(below, above float64) func(float64) []particle { // 8 from each side
		return func(float64) (all []particle) {
			for i := range 16 {
				side := float64(i % 2)
				all = append(all, particle{0.3 * float64(i), below + (above-below)*side, 0, 4 - 8*side, int64(i)})
			}
			return all
		}
	}
	one := func(y, vy float64) func(float64) []particle {
		return func(float64) []particle { return []particle{{1, y, 0, vy, 5}} }
	}
	for _, c := range []struct {
		what, want string
		start      func(float64) []particle
	}{
		{"too many", "segment 2: must have at most 12 particles, its capacity, got 16", crowd(1.8, 3.2)},
		{"too fast", "particle 5 left segment 1 for one that is not next to it", one(1.5, 16)},
		{"too fast downwards", "particle 5 left segment 3 for one that is not next to it", one(3.5, -26)},
		{"not a number", "particle 5 left segment 3 for one that is not next to it", one(3.5, math.NaN())},
	} {
		t.Run(c.what, func(t *testing.T) {
			eachBox(t, 2, p, c.start, func(t *testing.T, x *box) {
				test.Must(x.Run(t.Context(), 1))(t)
				if _, err := x.Values(1); !errors.Is(err, errRun) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
			})
		})
	}
	_, err := (&part{Segments: 4, All: 4, Capacity: 12}).place(crowd(1.5, 1.5)(0))
	if !errors.Is(err, errRun) || !strings.Contains(err.Error(), "segment 1: must have at most 12 particles") {
		t.Errorf("placed with error %v", err)
	}
}

// The reference agrees with forces between all pairs, summed in another order, and conserves momentum as long as no
// particle touches a wall.
func TestReference(t *testing.T) {
	const width, height, steps = 8.0, 8, 20
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

// The reference tells wrong values, those of another step, and a lost particle.
func TestCheck(t *testing.T) {
	p := problem{width: 5, segments: 3, particles: 20, dt: dt}
	eachBox(t, 1, p, func(h float64) []particle { return scattered(20, 5, h) }, func(t *testing.T, x *box) {
		values, err := x.Values(0)
		if err != nil || len(values) != 100 {
			t.Fatalf("%d values, %v", len(values), err)
		}
		if _, err := x.Check(values, 0); err != nil {
			t.Error(err)
		}
		if _, err := x.Check(values, 1); err == nil {
			t.Error("values of another step pass")
		}
		test.Says(t, test.ErrorOf(x.Check(values[5:], 0)), "must have all 20 particles, got 19")
		values[5*13+4] += 1e-15
		test.Says(t, test.ErrorOf(x.Check(values, 0)), "vy of particle 13 is")
	})
}

func TestRejects(t *testing.T) {
	tests.Rejects(t, map[string]string{
		"--size huge": `--size must be small, thesis or full, got "huge"`,
	})
	tests.OneAnswer(t, 2, "--samples 1 --iterations 2 --ranks 5")
}

// Four device ranks fit on a multiprocessor, of an H100 all 416 at the size of the thesis; on sm_100 three.
func TestCompiles(t *testing.T) {
	exampletest.Compile(t, source(128), 128, map[string]int{"sm_100": 168})
}
