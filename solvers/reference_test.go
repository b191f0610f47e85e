package solvers

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
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
	s := r.p.Star
	r.norms = kernels.Norms{}
	r.each(func(q domain.Vec) {
		side := func(a, d int) T {
			p := q
			p[a] += d
			return r.at(p)
		}
		c, w := T(s.Centre)*r.values[q], [3]T{T(s.Axis[0]), T(s.Axis[1]), T(s.Axis[2])}
		var v T
		switch {
		case s.Equal && s.Dims == 2:
			sum := side(0, 1) + side(1, 1)
			sum = sum + side(0, -1)
			sum = sum + side(1, -1)
			v = c + T(w[0]*sum)
		case s.Equal:
			sum := side(0, 1) + side(1, 1)
			sum = sum + side(2, 1)
			sum = sum + side(0, -1)
			sum = sum + side(1, -1)
			sum = sum + side(2, -1)
			v = c + T(w[0]*sum)
		default:
			v = c
			for a := range s.Dims {
				v = v + T(w[a]*(side(a, 1)+side(a, -1)))
			}
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
