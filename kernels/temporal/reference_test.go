package temporal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// problem is a pass to be checked: level 0 in an array with random points, and NaN where nothing may be read.
type problem[T rows.Float] struct {
	stencil  stencil.Stencil
	sides    Sides
	box      domain.Box
	depth    int
	layout   domain.Layout
	from, to []T
	moving   [6]bool
	walls    map[wallPoint]T // values of moving walls
	stored   []T             // the result of the pass

	axes int                  // largest number of axes along which a point of the stencil is offset
	made []func(domain.Vec) T // the levels, once computed
}

// wallPoint is a ghost in the first layer behind a wall at a level.
type wallPoint struct {
	level int
	at    domain.Vec
}

// newProblem returns a problem whose array has as many layers of ghosts as the pass reads.
func newProblem[T rows.Float](t testing.TB, s stencil.Stencil, sides Sides, size domain.Vec, depth int, rng *rand.Rand) *problem[T] {
	t.Helper()
	var zero T
	p := &problem[T]{stencil: s, sides: sides, depth: depth, axes: s.Footprint().Axes()}
	p.box = domain.Box{Lo: domain.Vec{3, -2, 7}, Hi: domain.Vec{3, -2, 7}.Add(size)}
	var width domain.Radius
	for a := range s.Dims {
		width.Minus[a], width.Plus[a] = s.AxisRadius(a), s.AxisRadius(a)
		if sides.low(a) == Open {
			width.Minus[a] *= depth
		}
		if sides.high(a) == Open {
			width.Plus[a] *= depth
		}
	}
	if s.Dims == 2 {
		p.box.Lo[2], p.box.Hi[2] = 0, 1
	}
	owned, before := p.box, width
	if shift := rng.IntN(4); rng.IntN(2) == 0 && shift < size[0] { // the first stored point is not aligned
		owned.Lo[0], before.Minus[0] = owned.Lo[0]+shift, before.Minus[0]+shift
	}
	l := test.Must(domain.NewLayout(owned, before, int(unsafe.Sizeof(zero))))(t)
	p.layout, p.from, p.to = l, make([]T, l.Length), make([]T, l.Length)
	for i := range p.from {
		p.from[i], p.to[i] = T(math.NaN()), T(math.NaN())
	}
	all := p.box.Grow(width)
	kerneltest.EachPoint(all, func(at domain.Vec) {
		if p.reads(at) {
			p.from[l.Offset(at)] = T(rng.Float64() - 0.5)
		}
	})
	// Ghosts that depend on points, also in edges.
	level := func(at domain.Vec) T { return p.from[l.Offset(at)] }
	kerneltest.EachPoint(all, func(at domain.Vec) {
		if p.reads(at) {
			p.from[l.Offset(at)] = p.value(0, level, at)
		}
	})
	return p
}

// reads reports whether sweeps read a ghost: if it is behind at most as many faces as the stencil has offset axes.
func (p *problem[T]) reads(at domain.Vec) bool {
	beyond := 0
	for a := range p.stencil.Dims {
		if at[a] < p.box.Lo[a] && p.sides.low(a) != Open || at[a] >= p.box.Hi[a] && p.sides.high(a) != Open {
			beyond++
		}
	}
	return beyond <= p.axes
}

// source returns the layer of points, counted from the face, that determines the n-th layer behind it, both from
// 0. ok is false for ghosts that keep their values or are odd.
func (s Side) source(n int) (layer int, ok bool) {
	switch s {
	case Mirror:
		return n, true
	case Repeat:
		return 0, true
	}
	return 0, false
}

// value returns the value at a point of level l, possibly behind faces; level returns the points.
func (p *problem[T]) value(l int, level func(domain.Vec) T, at domain.Vec) T {
	fixed, odd := false, -1
	for a := range p.stencil.Dims {
		for end, side := range [2]Side{p.sides.low(a), p.sides.high(a)} {
			n := p.box.Lo[a] - 1 - at[a]
			if end == 1 {
				n = at[a] - p.box.Hi[a]
			}
			if n < 0 || side == Open {
				continue
			}
			switch layer, ok := side.source(n); {
			case ok && end == 0:
				at[a] = p.box.Lo[a] + layer
			case ok:
				at[a] = p.box.Hi[a] - 1 - layer
			case side == Odd && n > 0:
				odd = a
			default:
				fixed = true
			}
		}
	}
	switch {
	case odd >= 0:
		inward := domain.Vec{}
		if inward[odd] = 1; at[odd] > p.box.Lo[odd] {
			inward[odd] = -1
		}
		face := at.Add(inward)
		return T(2*p.value(l, level, face)) - p.value(l, level, face.Add(inward))
	case fixed:
		if v, ok := p.walls[wallPoint{l, at}]; ok {
			return v
		}
		return p.from[p.layout.Offset(at)]
	}
	return level(at)
}

// want returns the last level.
func (p *problem[T]) want() func(domain.Vec) T { return p.levels()[p.depth] }

// levels returns all levels, computed by single sweeps. Level 0 must not change afterwards.
func (p *problem[T]) levels() []func(domain.Vec) T {
	if p.made != nil {
		return p.made
	}
	var r domain.Vec
	for a := range p.stencil.Dims {
		r[a] = p.stencil.AxisRadius(a)
	}
	now := func(at domain.Vec) T { return p.from[p.layout.Offset(at)] }
	all := []func(domain.Vec) T{now}
	for l := 1; l <= p.depth; l++ {
		region := p.sides.region(p.box, p.box, p.depth-l, r)
		size := region.Size()
		place := func(at domain.Vec) int {
			o := at.Sub(region.Lo)
			return o[0] + size[0]*(o[1]+size[1]*o[2])
		}
		before, next := now, make([]T, region.Points())
		kerneltest.EachPoint(region, func(at domain.Vec) {
			next[place(at)] = kerneltest.Apply(p.stencil, func(o domain.Vec) T { return p.value(l-1, before, at.Add(o)) })
		})
		now = func(at domain.Vec) T {
			if !region.Contains(at) {
				panic(fmt.Sprintf("level %d: point %v must exist", l, at))
			}
			return next[place(at)]
		}
		all = append(all, now)
	}
	p.made = all
	return all
}

// norms returns the norms of a level over the points of a box.
func (p *problem[T]) norms(level int, box domain.Box) (n rows.Norms) {
	all := p.levels()
	kerneltest.EachPoint(box, func(at domain.Vec) {
		rows.AddRow(&n, []T{all[level](at)}, []T{all[level-1](at)}, sums.Reproducible)
	})
	return n
}

// check compares the stored points, and checks that nothing else was stored.
func (p *problem[T]) check(t *testing.T) {
	t.Helper()
	want, wrong := p.want(), 0
	stored := map[int64]bool{}
	kerneltest.EachPoint(p.box, func(at domain.Vec) {
		o := p.layout.Offset(at)
		stored[o] = true
		if got, want := p.stored[o], want(at); got != want && wrong < 5 {
			wrong++
			t.Errorf("point %v: got %v, want %v", at, got, want)
		}
	})
	for o, v := range p.stored {
		if !stored[int64(o)] && v == v {
			t.Fatalf("element %d outside the box must not be written", o)
		}
	}
}

func (p *problem[T]) String() string {
	return fmt.Sprintf("dims=%d/points=%d/groups=%d/size=%v/sides=%v/depth=%d", p.stencil.Dims, p.stencil.Points(), len(p.stencil.Groups), p.box.Size(), p.sides, p.depth)
}

// stencils returns all named linear stencils, for stars also with unequal spacings.
func stencils(t testing.TB) (all []stencil.Stencil) {
	for _, spacing := range [][]float64{{0.1, 0.1}, {0.1, 0.2}, {0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
		for _, kind := range stencil.Kinds(len(spacing)) {
			if kind.OneSpacing() && spacing[0] != spacing[1] {
				continue
			}
			s := test.Must(stencil.HeatOf(kind, spacing, 1, 1e-3))(t)
			all = append(all, s)
		}
	}
	return all
}

// randomSides returns random sides that the stencil supports on a box.
func randomSides(s stencil.Stencil, size domain.Vec, rng *rand.Rand) (sides Sides) {
	for {
		for i := range sides[:2*s.Dims] {
			sides[i] = Side(rng.IntN(5))
			if sides[i] == Mirror && size[i/2] < s.AxisRadius(i/2) {
				sides[i] = Repeat
			}
		}
		if sides.check(s) == nil {
			return sides
		}
	}
}
