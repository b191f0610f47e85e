package scheme

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// force is the parameters of drift and of kick. F is computed in each step.
type force struct {
	Amplitude float64
	F         float64
	G         float32
}

// at sets what changes, after a part of a step.
func (p *force) at(m sweep.Moment, part float64) {
	p.F, p.G = p.Amplitude*math.Sin(3*m.Time(part)), float32(math.Cos(float64(m.Step)))
}

// drift averages along z and adds a force, timed what depends on the step and the time.
var (
	drift = sweep.Point{
		Name: "drift", Dims: 3, Parameters: force{},
		CUDA: `template <typename P> __device__ __forceinline__ void drift(P &p) {
	p.set(next, 0.25 * p.at(u, 0, 0, -1) + 0.5 * p.at(u) + 0.25 * p.at(u, 0, 0, 1) + p.parameters.F + (double)p.parameters.G);
}`,
		Go: func(r *sweep.Row) {
			p, u := sweep.Parameters[force](r), sweep.At[float64](r, "u", 0, 0, 0)
			below, above := sweep.At[float64](r, "u", 0, 0, -1), sweep.At[float64](r, "u", 0, 0, 1)
			for i := range r.N {
				sweep.At[float64](r, "next", 0, 0, 0)[i] = 0.25*below[i] + 0.5*u[i] + 0.25*above[i] + p.F + float64(p.G)
			}
		},
	}
	timed = sweep.Point{
		Name: "timed", Dims: 3, Parameters: force{},
		CUDA: `template <typename P> __device__ __forceinline__ void timed(P &p) {
	p.set(next, 0.25 * p.at(u, 0, 0, -1) + 0.5 * p.at(u) + 0.25 * p.at(u, 0, 0, 1) + p.time() * p.parameters.Amplitude + (double)p.step());
}`,
		Go: func(r *sweep.Row) {
			p, u := sweep.Parameters[force](r), sweep.At[float64](r, "u", 0, 0, 0)
			below, above := sweep.At[float64](r, "u", 0, 0, -1), sweep.At[float64](r, "u", 0, 0, 1)
			for i := range r.N {
				sweep.At[float64](r, "next", 0, 0, 0)[i] = 0.25*below[i] + 0.5*u[i] + 0.25*above[i] + float64(r.Time()*p.Amplitude) + float64(r.Step())
			}
		},
	}
)

// kick adds a force in place, and may reduce.
func kick(reduce bool) *sweep.Point {
	p := &sweep.Point{Name: "kick", Dims: 3, Parameters: force{}}
	p.CUDA = `template <typename P> __device__ __forceinline__ void kick(P &p) {
	p.set(next, 0.5 * p.at(next) + p.parameters.F);`
	if reduce {
		p.Reductions = []sweep.Reduction{{Name: "most", Op: sweep.Max}}
		p.CUDA += "p.reduce(most, 0.5 * p.at(next) + p.parameters.F);"
	}
	p.CUDA += "}"
	p.Go = func(r *sweep.Row) {
		next := sweep.At[float64](r, "next", 0, 0, 0)
		for i := range next {
			next[i] = 0.5*next[i] + sweep.Parameters[force](r).F
		}
		if reduce {
			copy(r.Reduced("most"), next)
		}
	}
	return p
}

// Parameters of each step, the step and the time reach point functions under every scheme that takes the stages, to the
// same bits as plain loops; parameters that were set between two runs too.
func TestParametersOfEveryScheme(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	const one, groups = "runs steps of one stage", "exchanges after each step"
	const owned, stars = "must have no reductions", "with an exchange interval of 2 steps"
	defer func(steps int64) { fedSteps = steps }(fedSteps)
	fedSteps = 16
	rows := []struct {
		name             string
		kicks, timed     bool
		measured, reduce bool
		group            int
		refused          map[Scheme]string
	}{
		{name: "parameters"},
		{name: "norms", measured: true},
		{name: "time", timed: true, measured: true},
		{name: "two stages", kicks: true, refused: map[Scheme]string{Ranks: one, Blocked: one}},
		{name: "reductions", kicks: true, measured: true, reduce: true, refused: map[Scheme]string{Ranks: one, Blocked: one}},
		{name: "groups", measured: true, group: 2, refused: map[Scheme]string{Ranks: groups}},
		{name: "groups of two stages", kicks: true, group: 2, refused: map[Scheme]string{Ranks: groups, Blocked: one}},
		{name: "groups with reductions", kicks: true, reduce: true, group: 2,
			refused: map[Scheme]string{Ranks: groups, Blocked: one, Fused: owned, Resident: owned}},
	}
	size := []int{6, 5, 16}
	begin := func(p domain.Vec) float64 { return float64(p[0]) + 0.3*float64(p[1]*p[2]) }
	every := func(t *testing.T, set *testdevices.Set, n int) {
		gpus := !set.Devices[0].GoKernels
		for i, row := range rows {
			for k, name := range All() {
				if testdevices.OnCPU(set.Devices[0]) && !testdevices.Turn(i+k, 8, 8) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s", row.name, name), func(t *testing.T) {
					n := min(n, len(set.Devices))
					place := placed(t, set.Devices[:n], size, [3]bool{false, false, true}, domain.Vec{1, 1, n})
					wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(3, 1), max(1, row.group)))(t)
					u := newVariable(t, place, wide.Spec(halo.Spec{Name: "u", Element: halo.Float64}), 2)
					succeeds(t, halo.FillPoints(u.Level(0), begin))
					succeeds(t, u.SetAll())
					first := Stage{Reads: []Access{u.At(0, stencil.Star(3, 1))}, Writes: []Access{u.At(1, nil).Named("next")}}
					first.Point = &drift
					first.Parameters = func(m sweep.Moment, p any) error { p.(*force).at(m, 0); return nil }
					if row.timed {
						first.Point, first.Parameters = &timed, nil
					}
					step := &Step{Length: 0.1, Stages: []Stage{first}, Group: row.group}
					if row.kicks {
						next := []Access{u.At(1, nil).Named("next")}
						step.Stages = append(step.Stages, Stage{Point: kick(row.reduce), Reads: next, Writes: next,
							Parameters: func(m sweep.Moment, p any) error { p.(*force).at(m, 0.5); return nil }})
					}
					if row.measured {
						step.Measured = []*Variable{u}
					}
					x := runnerFor(t, set, step, name)
					want := newLoop(size, begin)
					for i, steps := range []int64{2, 2*graphSteps + 3, 5} {
						for stage := range step.Stages {
							succeeds(t, x.SetParameters(stage, force{Amplitude: float64(1 + i + stage)}))
						}
						r, err := x.Run(t.Context(), Options{Scheme: name, Steps: steps, CheckEvery: 4, Keep: true, History: row.measured || row.reduce, Limit: testLimit})
						says, refused := row.refused[name]
						if gpus && name == Resident && row.group > 1 && !refused {
							says, refused = stars, true
						}
						if refused {
							wants(t, "the step", err, ErrUnsuited, says)
							return
						}
						succeeds(t, err)
						for range steps {
							want.step(row.timed, row.kicks, float64(1+i))
						}
						got := must(halo.ReadAll[float64](u.Level(x.Done())))(t)
						if !slices.Equal(got, want.u) {
							t.Fatalf("after %d steps: got %v, want %v", x.Done(), got[:8], want.u[:8])
						}
						if most := slices.Max(want.u); row.reduce && r.Reduced[0] != most {
							t.Errorf("reduced %v, want %v", r.Reduced, most)
						}
						if most := slices.MaxFunc(want.u, func(a, b float64) int { return int(math.Copysign(1, math.Abs(a)-math.Abs(b))) }); row.measured && r.Norms[0].Max != math.Abs(most) {
							t.Errorf("norm %v, want %v", r.Norms[0].Max, math.Abs(most))
						}
					}
				})
			}
		}
	}
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) {
			testdevices.Each(t, n, func(t *testing.T, set *testdevices.Set) { every(t, set, n) })
		})
	}
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { every(t, testdevices.CPUBesideThreads(t, 2), 2) })
}

// loop computes the same on one array.
type loop struct {
	u     []float64
	plane int
	n     int64
}

func newLoop(size []int, begin func(domain.Vec) float64) *loop {
	l := &loop{plane: size[0] * size[1]}
	for z := range size[2] {
		for y := range size[1] {
			for x := range size[0] {
				l.u = append(l.u, begin(domain.Vec{x, y, z}))
			}
		}
	}
	return l
}

func (l *loop) step(timed, kicks bool, amplitude float64) {
	m := sweep.Moment{Step: l.n + 1, Length: 0.1}
	p, next, points := force{Amplitude: amplitude}, make([]float64, len(l.u)), len(l.u)
	p.at(m, 0)
	for i := range l.u {
		sum := 0.25*l.u[(i+points-l.plane)%points] + 0.5*l.u[i] + 0.25*l.u[(i+l.plane)%points]
		if timed {
			next[i] = sum + float64(float64(0.1*float64(l.n))*amplitude) + float64(m.Step)
		} else {
			next[i] = sum + p.F + float64(p.G)
		}
	}
	if p.Amplitude++; kicks {
		p.at(m, 0.5)
		for i := range next {
			next[i] = 0.5*next[i] + p.F
		}
	}
	l.u, l.n = next, l.n+1
}

// peak reduces next by max.
var peak = sweep.Point{
	Name: "peak", Dims: 3, Reductions: []sweep.Reduction{{Name: "most", Op: sweep.Max}},
	CUDA: "template <typename P> __device__ __forceinline__ void peak(P &p) { p.reduce(most, p.at(next)); }",
	Go:   func(r *sweep.Row) { copy(r.Reduced("most"), sweep.At[float64](r, "next", 0, 0, 0)) },
}

// Steps whose length depends on the fields give the bits of plain loops with every scheme of several stages,
// over several runs, up to a time; the others reject them.
func TestPaceOfEveryScheme(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	const one, writes = "runs steps of one stage", "the last stage must write level +1"
	const until = 1.25 - 1.0/512
	size := []int{6, 5, 16}
	begin := func(p domain.Vec) float64 { return float64(p[0]) + 0.3*float64(p[1]*p[2]) }
	// lengths are powers of 2, so that times have no rounding errors
	pace := func(now float64, reduced []float64) (float64, error) {
		_, exponent := math.Frexp(reduced[0])
		return min(math.Ldexp(1, -exponent), until-now), nil
	}
	wall := boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile {
		return func(values []float64, at domain.Vec, now float64) {
			for i := range values {
				values[i] = float64(at[0]+i) - 4*now
			}
		}
	}}
	hot := boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{2}}
	every := func(t *testing.T, set *testdevices.Set, n int) {
		for kind, refused := range map[string]map[Scheme]string{
			"group=1": {Ranks: one, Blocked: one},
			"courant": {Ranks: one, Blocked: one},
			"group=2": {Ranks: "exchanges after each step", Blocked: one, Fused: writes, Resident: writes},
		} {
			group, pace := 1, pace
			if kind == "group=2" {
				group = 2
			}
			var courant *sweep.Courant
			if kind == "courant" {
				courant = &sweep.Courant{Distance: 1, Until: until}
				pace = func(now float64, reduced []float64) (float64, error) { return courant.Next(now, reduced[0]) }
			}
			for _, name := range All() {
				if _, no := refused[name]; testdevices.OnCPU(set.Devices[0]) && (no || group > 1) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s", name, kind), func(t *testing.T) {
					place := placed(t, set.Devices[:n], size, [3]bool{}, domain.Vec{1, 1, n})
					wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(3, 1), group))(t)
					u := newVariable(t, place, wide.Spec(halo.Spec{Name: "u", Element: halo.Float64}), 2)
					u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Neumann})
					far := func(x int, now float64) float64 { return float64(x) - 4*now }
					if u.Boundary[4], u.Boundary[5] = wall, wall; name.Needs().Steady || courant != nil {
						u.Boundary[4], u.Boundary[5] = hot, hot
						far = func(int, float64) float64 { return 2 }
					}
					succeeds(t, halo.FillPoints(u.Level(0), begin))
					succeeds(t, u.SetAll())
					next := []Access{u.At(1, nil).Named("next")}
					step := &Step{Pace: pace, Group: group, Measured: []*Variable{u}, Stages: []Stage{
						{Point: &drift, Reads: []Access{u.At(0, stencil.Star(3, 1))}, Writes: next,
							Parameters: func(m sweep.Moment, p any) error {
								p.(*force).F, p.(*force).G = m.Length, float32(m.Time(0))
								return nil
							}},
						{Point: &peak, Reads: next},
					}}
					if courant != nil {
						step.Pace, step.Courant = nil, courant
						step.Stages[0].Point, step.Stages[0].Parameters = &grow, nil
					}
					x := runnerFor(t, set, step, name)
					want, now := newLoop(size, begin), 0.0
					for _, steps := range []int64{2, 7, 1000} {
						r, err := x.Run(t.Context(), Options{Scheme: name, Steps: steps, CheckEvery: 4, History: true, Limit: testLimit})
						if says, ok := refused[name]; ok {
							wants(t, "the step", err, ErrUnsuited, says)
							return
						}
						succeeds(t, err)
						for i := range r.Steps {
							length := must(pace(now, []float64{slices.Max(want.u)}))(t)
							m := sweep.Moment{Step: want.n + 1, Start: now - float64(float64(want.n)*length), Length: length}
							want.pace(length, m.Time(0), far, size[0])
							if now += length; (i+1)%4 == 0 {
								if c := r.History[i/4]; c.Step != i+1 || c.Time != now || c.Length != length {
									t.Errorf("history: step %d, time %v, length %v, want %d, %v, %v", c.Step, c.Time, c.Length, i+1, now, length)
								}
							}
						}
						if got := must(halo.ReadAll[float64](u.Level(x.Done())))(t); !slices.Equal(got, want.u) {
							t.Fatalf("after %d steps: got %v, want %v", x.Done(), got[:8], want.u[:8])
						}
						if r.Time != now || x.Time() != now || r.Reduced[0] != slices.Max(want.u) {
							t.Errorf("time %v, %v, want %v; reduced %v", r.Time, x.Time(), now, r.Reduced)
						}
						if (r.Stopped == StoppedTime) != (now == until) || (r.Steps < steps) != (now == until) {
							t.Errorf("%d steps, stopped: %s at %v", r.Steps, r.Stopped, now)
						}
					}
					if r := must(x.Run(t.Context(), Options{Scheme: name, Steps: 1, Limit: testLimit}))(t); now != until || r.Steps != 0 || r.Stopped != StoppedTime {
						t.Errorf("after the end, at %v: %d steps, stopped: %s", now, r.Steps, r.Stopped)
					}
				})
			}
		}
	}
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) {
			testdevices.Each(t, n, func(t *testing.T, set *testdevices.Set) { every(t, set, min(n, len(set.Devices))) })
		})
	}
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { every(t, testdevices.CPUBesideThreads(t, 2), 2) })
}

// A trial goes on beyond the end of the simulation, with the last length, and its rounds have many steps too.
func TestPaceOfTrials(t *testing.T) {
	var all [][]float64
	for _, name := range []Scheme{Baseline, Resident} {
		set := testdevices.CPU(t, 1)
		place := placed(t, set.Devices, []int{6, 5, 8}, [3]bool{true, true, true}, domain.Vec{1, 1, 1})
		u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}, 2)
		succeeds(t, halo.FillPoints(u.Level(0), func(p domain.Vec) float64 { return 1 + float64(p[0]+p[2]) }))
		succeeds(t, u.SetAll())
		next := []Access{u.At(1, nil).Named("next")}
		step := &Step{Courant: &sweep.Courant{Distance: 1, Until: 0.5}, Stages: []Stage{
			{Point: &grow, Reads: []Access{u.At(0, stencil.Star(3, 1))}, Writes: next}, {Point: &peak, Reads: next}}}
		x := runnerFor(t, set, step, name)
		most, asked := int64(0), int64(0)
		r, err := x.Run(t.Context(), Options{Scheme: name, Steps: 1 << 40, Limit: testLimit, anything: true,
			Progress: func(steps int64) { most, asked = max(most, steps-asked), steps },
			Interval: func(steps int64, _ time.Duration) int64 { return 20 - steps }})
		succeeds(t, err)
		if r.Steps < 20 || (most > 1) != (name == Resident) {
			t.Errorf("%s: %d steps, at most %d per launch", name, r.Steps, most)
		}
		all = append(all, must(halo.ReadAll[float64](u.Level(x.Done())))(t))
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("got %v, want %v", all[1], all[0])
	}
}

// grow is a stage of TestPaceOfEveryScheme by the length of the step.
var grow = sweep.Point{
	Name: "grow", Dims: 3,
	CUDA: `template <typename P> __device__ __forceinline__ void grow(P &p) {
		p.set(next, 0.25 * p.at(u, 0, 0, -1) + 0.5 * p.at(u) + 0.25 * p.at(u, 0, 0, 1) + p.length() + (double)(float)p.time());
	}`,
	Go: func(r *sweep.Row) {
		u, below, above := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "u", 0, 0, -1), sweep.At[float64](r, "u", 0, 0, 1)
		for i := range r.N {
			sweep.At[float64](r, "next", 0, 0, 0)[i] = 0.25*below[i] + 0.5*u[i] + 0.25*above[i] + r.Length() + float64(float32(r.Time()))
		}
	},
}

// pace is a step of TestPaceOfEveryScheme, with walls along z.
func (l *loop) pace(length, now float64, wall func(x int, now float64) float64, nx int) {
	next, points := make([]float64, len(l.u)), len(l.u)
	at := func(i int) float64 {
		if i < 0 || i >= points {
			return wall((i+l.plane)%nx, now)
		}
		return l.u[i]
	}
	for i := range l.u {
		next[i] = 0.25*at(i-l.plane) + 0.5*l.u[i] + 0.25*at(i+l.plane) + length + float64(float32(now))
	}
	l.u, l.n = next, l.n+1
}

// A length that makes no sense, or a last stage that writes, is an error; a length that is not a number is divergence.
func TestInvalidPaces(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := countingStep(t, set, 1)
	step.Pace = func(float64, []float64) (float64, error) { return 1, nil }
	wants(t, "the last stage writes", step.Check(), nil, `the last stage must only have reductions, got "count"`)
	step.Stages = reducedAlone(step.Measured[0])
	for says, length := range map[string]float64{"length of at least 0, got -1": -1, "got +Inf": math.Inf(1), "at time 1: mine": 0, "": math.NaN()} {
		for _, at := range []float64{0, 1} {
			step.Pace = func(now float64, _ []float64) (float64, error) {
				switch {
				case now < at:
					return at - now, nil
				case length == 0:
					return 0, errors.New("mine")
				}
				return length, nil
			}
			r, err := runnerBy(t, set, step, p2p.Staged).Run(t.Context(), Options{Scheme: Baseline, Steps: 9, Limit: testLimit})
			if length != 0 || at > 0 {
				wants(t, says, err, nil, says)
			}
			if says == "" && (r.Stopped != StoppedDiverged || float64(r.Steps) != at) {
				t.Errorf("not a number: %d steps, stopped: %s", r.Steps, r.Stopped)
			}
		}
	}
}

// SetParameters takes values of the type of a stage's parameters, or pointers to them.
func TestSetParametersOfAnotherType(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := countingStep(t, set, 1)
	step.Stages[0].Point.Parameters = force{}
	x := runnerBy(t, set, step, p2p.Staged)
	succeeds(t, x.SetParameters(0, &force{Amplitude: 1}))
	for says, err := range map[string]error{
		"the runner is nil": (*Runner)(nil).SetParameters(0, force{}),
		"got 1 of 1":        x.SetParameters(1, force{}),
		"got float64":       x.SetParameters(0, 1.0),
		"got <nil>":         x.SetParameters(0, nil),
		"must not be nil":   x.SetParameters(0, (*force)(nil)),
	} {
		wants(t, says, err, nil, says)
	}
	succeeds(t, x.Close())
	wants(t, "closed", x.SetParameters(0, force{}), nil, "closed")
}
