package solvers

import (
	"math"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// reference solves a problem by plain loops on one array, sharing only the problem's description with the
// package. Its points are indexed by global coordinates; ghosts follow the boundary conditions.
type reference[T float32 | float64] struct {
	p     *Problem
	field map[domain.Vec]T
	steps int64
}

func newReference[T float32 | float64](p *Problem) *reference[T] {
	r := &reference[T]{p: p, field: map[domain.Vec]T{}}
	ev := p.Initial.NewEvaluator(p.coordinates(0))
	r.each(func(q domain.Vec) { r.field[q] = T(ev.At(q[0], q[1], q[2])) })
	return r
}

func (r *reference[T]) each(f func(q domain.Vec)) {
	n := r.p.Grid.Size
	for z := range n[2] {
		for y := range n[1] {
			for x := range n[0] {
				f(domain.Vec{x, y, z})
			}
		}
	}
}

// values returns all points, x fastest.
func (r *reference[T]) values() (all []float64) {
	r.each(func(q domain.Vec) { all = append(all, float64(r.field[q])) })
	return all
}

// at returns the value at q, which is owned or at most two steps behind faces: periodic axes are followed, then walls
// half a spacing out, of z, then y, then x, and last the Dirichlet wall of the last axis counts.
func (r *reference[T]) at(q domain.Vec) T {
	behind, half := -1, -1
	for a, n := range r.p.Grid.Size {
		face := 2 * a
		if q[a] >= n {
			face++
		} else if q[a] >= 0 {
			continue
		}
		switch kind := r.p.Boundary[face].Kind; {
		case kind == Periodic:
			q[a] = (q[a] + 2*n) % n
		case kind == Dirichlet && !r.p.Boundary[face].Half:
			behind = face
		default:
			half = face
		}
	}
	if half >= 0 {
		return r.halfOut(half, q)
	}
	if behind < 0 {
		return r.field[q]
	}
	a, in := behind/2, 1-2*(behind%2)
	if q[a] == -1 || q[a] == r.p.Grid.Size[a] {
		return T(r.p.Boundary[behind].Value.NewEvaluator(r.p.coordinates(r.steps)).At(q[0], q[1], q[2]))
	}
	wall, point := q, q
	wall[a], point[a] = q[a]+in, q[a]+2*in
	return T(2*r.at(wall)) - r.at(point)
}

// halfOut returns the value at q behind a wall half a spacing from the nearest point.
func (r *reference[T]) halfOut(face int, q domain.Vec) T {
	axis, in, w, d := face/2, q, r.p.Boundary[face], r.p.Spacing[face/2]
	c := r.p.coordinates(r.steps)
	layer, last := -1-q[axis], r.p.Grid.Size[axis]-1
	c.Shift[axis] += 0.5
	if q[axis] > last {
		layer = q[axis] - last - 1
		c.Shift[axis]--
	}
	q[axis] = map[bool]int{true: -1, false: last + 1}[q[axis] < 0]
	if w.Kind == "outflow" {
		in[axis] = min(max(in[axis], 0), last)
		return r.at(in)
	}
	in[axis] = map[bool]int{true: layer, false: last - layer}[q[axis] < 0]
	v := r.at(in)
	if w.Value == nil {
		return v
	}
	d *= float64(2*layer + 1)
	var a, b float64
	value := func(e *stencil.Expression) float64 { return e.NewEvaluator(c).At(q[0], q[1], q[2]) }
	switch D := r.p.Diffusivity; w.Kind {
	case "dirichlet":
		a, b = -1, 2
	case "neumann":
		a, b = 1, d
	case "flux":
		a, b = 1, d/D
	case "robin":
		h := value(w.Transfer)
		if a, b = (D/d-h/2)/(D/d+h/2), h/(D/d+h/2); !w.Transfer.IsNumber() { // the sum of b*g is made in float64
			return T(T(a)*v) + T(b*value(w.Value))
		}
	}
	g := T(value(w.Value))
	return T(T(a)*v) + T(T(b)*g)
}

func (r *reference[T]) step() (norms reduce.Norms) {
	next := map[domain.Vec]T{}
	s := r.p.Stencil
	r.each(func(q domain.Vec) {
		v := T(s.Center) * r.field[q]
		for _, g := range s.Groups {
			var sum T
			for i, part := range g.Parts {
				one := r.at(q.Add(part[0]))
				for _, o := range part[1:] {
					one = one + r.at(q.Add(o))
				}
				if i == 0 {
					sum = one
				} else {
					sum = sum + one
				}
			}
			v = v + T(T(g.Weight)*sum)
		}
		next[q] = v
		d, u := float64(v)-float64(r.field[q]), float64(v)
		norms.MaxChange = max(norms.MaxChange, d, -d)
		sums.Reproducible.Add(&norms.SumChange2, []float64{d * d})
		norms.Max = max(norms.Max, u, -u)
		sums.Reproducible.Add(&norms.Sum2, []float64{u * u})
	})
	r.field = next
	r.steps++
	return norms
}

// oracle is a reference of either type, which has the expected result of runs.
type oracle struct {
	p      *Problem
	step   func() reduce.Norms
	values func() []float64
}

func newOracle(p *Problem) *oracle {
	if p.Element == domain.Float32 {
		r := newReference[float32](p)
		return &oracle{p, r.step, r.values}
	}
	r := newReference[float64](p)
	return &oracle{p, r.step, r.values}
}

// run runs the steps of a run with these options, and returns its norms and the reason why it ends.
func (r *oracle) run(o scheme.Options) (history []scheme.Check, stopped scheme.Stopped) {
	for n := int64(1); n <= o.Steps; n++ {
		norms := r.step()
		if n%max(1, o.CheckEvery) != 0 && n < o.Steps {
			continue
		}
		one := scheme.Norms{
			MaxChange: norms.MaxChange, Max: norms.Max, L2Change: math.Sqrt(norms.SumChange2.Value()),
			L2: math.Sqrt(norms.Sum2.Value() / float64(r.p.Grid.Points())),
		}
		history = append(history, scheme.Check{Step: n, Norms: []scheme.Norms{one}})
		change := one.MaxChange
		if o.Norm == scheme.L2Norm {
			change = one.L2Change
		}
		if change <= o.Tolerance {
			return history, scheme.StoppedTolerance
		}
	}
	return history, scheme.StoppedSteps
}

// verify runs the solver, which is at the step of the oracle, and fails the test unless the field and the
// norms are bitwise identical to those of the oracle.
func (r *oracle) verify(t testing.TB, s *Solver, h how, o scheme.Options) {
	t.Helper()
	o = h.options(o)
	o.History = true
	res := must(s.Run(t.Context(), o))(t)
	history, stopped := r.run(o)
	last := history[len(history)-1]
	if res.Stopped != stopped || res.Steps != last.Step || !same(res.Check, last) {
		t.Errorf("stopped by %s after %d steps with %+v, not by %s with %+v", res.Stopped, res.Steps, res.Check, stopped, last)
	}
	if !slices.EqualFunc(res.History, history, same) {
		t.Errorf("norms %+v\nnot %+v", res.History, history)
	}
	compare(t, r.p.Grid, read(t, s), r.values())
}

// stoppedAt fails the test unless the field and the norms are those of the step at which a first run has
// stopped.
func (r *oracle) stoppedAt(t testing.TB, s *Solver, res scheme.Result) {
	t.Helper()
	norms, _ := r.run(scheme.Options{Steps: res.Steps, CheckEvery: res.Steps})
	if !same(res.Check, norms[0]) {
		t.Errorf("norms %+v, want %+v", res.Check, norms[0])
	}
	compare(t, r.p.Grid, read(t, s), r.values())
}

// same reports whether checks of one variable are of one step and have the same norms.
func same(a, b scheme.Check) bool { return a.Step == b.Step && slices.Equal(a.Norms, b.Norms) }

// solved fails the test unless a new solver of a problem runs with results bitwise identical to the oracle.
func solved(t testing.TB, set *testdevices.Set, p *Problem, h how, runs ...scheme.Options) {
	t.Helper()
	s, r := prepare(t, set, p, h), newOracle(p)
	for _, o := range runs {
		r.verify(t, s, h, o)
	}
}

// starOf converts the star to the stencil of a problem.
func starOf(s stencil.StarWeights, err error) (stencil.Stencil, error) { return s.Stencil(), err }
