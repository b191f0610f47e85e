package solvers

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// reference solves a problem by plain loops on one array, sharing nothing with
// the package but the problem's description. Its points are indexed by global
// coordinates; ghosts are looked up by what the boundary conditions say.
type reference[T float32 | float64] struct {
	p      *Problem
	values map[domain.Vec]T
	norms  reduce.Norms
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

// at returns the value at q, which is owned or at most two steps behind faces: periodic
// axes and Neumann walls are followed, then the last Dirichlet wall counts.
func (r *reference[T]) at(q domain.Vec) T {
	behind := -1
	for a, n := range r.p.Grid.Size {
		face := 2 * a
		if q[a] >= n {
			face++
		} else if q[a] >= 0 {
			continue
		}
		switch r.p.Walls[face].Kind {
		case Dirichlet:
			behind = face
		case Neumann:
			for q[a] < 0 || q[a] >= n {
				q[a] = map[bool]int{true: -1 - q[a], false: 2*n - 1 - q[a]}[q[a] < 0]
			}
		case Periodic:
			q[a] = (q[a] + 2*n) % n
		}
	}
	if behind < 0 {
		return r.values[q]
	}
	a, in := behind/2, 1-2*(behind%2)
	if q[a] == -1 || q[a] == r.p.Grid.Size[a] {
		return T(r.p.Walls[behind].Value.NewEvaluator(r.p.coordinates(r.steps)).At(q[0], q[1], q[2]))
	}
	wall, point := q, q
	wall[a], point[a] = q[a]+in, q[a]+2*in
	return T(2*r.at(wall)) - r.at(point)
}

func (r *reference[T]) step() {
	next := map[domain.Vec]T{}
	s := r.p.Stencil
	r.norms = reduce.Norms{}
	r.each(func(q domain.Vec) {
		v := T(s.Centre) * r.values[q]
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
		d, u := float64(v)-float64(r.values[q]), float64(v)
		r.norms.MaxChange = max(r.norms.MaxChange, d, -d)
		sums.Reproducible.Add(&r.norms.SumChange2, []float64{d * d})
		r.norms.Max = max(r.norms.Max, u, -u)
		sums.Reproducible.Add(&r.norms.Sum2, []float64{u * u})
	})
	r.values = next
	r.steps++
}

// starOf turns the star into the stencil of a problem.
func starOf(s stencil.StarWeights, err error) (stencil.Stencil, error) { return s.Stencil(), err }
