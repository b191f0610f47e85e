package solvers

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// reference solves a problem by plain loops on one array, sharing nothing with
// the package but the problem's description. Its points are indexed by global
// coordinates; ghosts are looked up by what the boundary conditions say.
type reference[T float32 | float64] struct {
	p      *Problem
	values map[domain.Vec]T
	norms  kernels.Norms
	steps  int64
}

func newReference[T float32 | float64](p *Problem) *reference[T] {
	r := &reference[T]{p: p, values: map[domain.Vec]T{}}
	ev := p.Initial.NewEvaluator(p.coordinates(0))
	r.each(func(q domain.Vec) { r.values[q] = T(ev.At(q[0], q[1], q[2])) })
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

// at returns the value at q, which is owned or one step behind one face.
func (r *reference[T]) at(q domain.Vec) T {
	for a, n := range r.p.Grid.Size {
		if q[a] >= 0 && q[a] < n {
			continue
		}
		face := 2 * a
		if q[a] == n {
			face++
		}
		switch w := r.p.Walls[face]; w.Kind {
		case Dirichlet:
			return T(w.Value.NewEvaluator(r.p.coordinates(r.steps)).At(q[0], q[1], q[2]))
		case Neumann:
			q[a] = max(0, min(q[a], n-1))
		case Periodic:
			q[a] = (q[a] + n) % n
		}
	}
	return r.values[q]
}

func (r *reference[T]) step() {
	next := map[domain.Vec]T{}
	s := r.p.Stencil
	r.norms = kernels.Norms{}
	r.each(func(q domain.Vec) {
		v := T(s.Centre) * r.values[q]
		for _, g := range s.Groups {
			sum := r.at(q.Add(g.Offsets[0]))
			for _, o := range g.Offsets[1:] {
				sum = sum + r.at(q.Add(o))
			}
			v = v + T(T(g.Weight)*sum)
		}
		next[q] = v
		d, u := float64(v)-float64(r.values[q]), float64(v)
		r.norms.MaxChange = max(r.norms.MaxChange, d, -d)
		r.norms.SumChange2 += d * d
		r.norms.Max = max(r.norms.Max, u, -u)
		r.norms.Sum2 += u * u
	})
	r.values = next
	r.steps++
}

// starOf turns the star into the stencil of a problem.
func starOf(s stencil.Star, err error) (stencil.Stencil, error) { return s.Stencil(), err }
