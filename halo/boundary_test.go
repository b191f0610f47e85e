package halo_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// drawFaces draws a boundary condition for every face at which an axis ends.
func drawFaces(t *rapid.T, f *halo.Field) (walls boundary.Faces) {
	for _, side := range domain.Faces(f.Cut.Grid.Dims) {
		if f.Cut.Grid.Periodic[side.Axis()] {
			continue
		}
		w := walls.At(side)
		w.Kind = rapid.SampledFrom([]boundary.Kind{boundary.Dirichlet, boundary.Outflow, boundary.Neumann}).Draw(t, "kind")
		if w.Kind == boundary.Dirichlet {
			for range rapid.SampledFrom([]int{1, max(1, f.Spec.Components)}).Draw(t, "values") {
				w.Values = append(w.Values, float64(rapid.IntRange(-99, 99).Draw(t, "value")))
			}
		}
	}
	return walls
}

// behind returns where the value of a point comes from: a condition with values, or an owned point of the
// grid.
func behind(g domain.Grid, walls *boundary.Faces, at domain.Vec) (number *boundary.Condition, q domain.Vec) {
	q = at
	for a, n := range g.Size {
		if q[a] >= 0 && q[a] < n {
			continue
		}
		if g.Periodic[a] {
			q[a] = (q[a] + n) % n
			continue
		}
		face := 2 * a
		if at[a] >= n {
			face++
		}
		switch w := &walls[face]; w.Kind {
		case boundary.Dirichlet:
			number = w
		case boundary.Outflow:
			q[a] = min(max(q[a], 0), n-1)
		case boundary.Neumann:
			q[a] = max(-1-at[a], min(at[a], 2*n-1-at[a]))
		}
	}
	return number, q
}

// isSet reports whether a point of a component is set by an exchange and the boundary conditions: it is
// behind a physical boundary, or within the component's own width at other sides.
func isSet(f *halo.Field, component, rank int, at domain.Vec) bool {
	own, width := f.Cut.Subdomains[rank].Box, f.Spec.WidthOf(component)
	for a, n := range f.Cut.Grid.Size {
		wall := !f.Cut.Grid.Periodic[a] && (at[a] < 0 || at[a] >= n)
		if !wall && (at[a] < own.Lo[a]-width.Minus[a] || at[a] >= own.Hi[a]+width.Plus[a]) {
			return false
		}
	}
	return true
}

// wallValue is the value that a condition with values sets at a point.
func wallValue(p *picture, w *boundary.Condition, value int) float64 {
	parts, _ := p.parts()
	if value%parts > 0 {
		return 0 // imaginary part
	}
	return w.Values[min(value/parts, len(w.Values)-1)]
}

// walled is a drawn field with its exchange and boundary conditions. The values of owned points encode their
// places.
type walled struct {
	*halo.Field
	plan  *halo.Plan
	x     *halo.Exchanger
	walls boundary.Faces
	w     *boundary.Ghosts
	at    []*streams.Stream
}

const unset = -12345 // value of unset ghosts

func drawWalled(t *rapid.T, set *testdevices.Set, change func(s *halo.Spec)) (d walled) {
	p := drawPlace(t, set, 9)
	s := drawNumbers(t, 0, p)
	change(&s)
	d.Field = openField(t, p, s)
	d.walls = drawFaces(t, d.Field)
	d.plan = must(halo.NewPlan(p, set.Links, p2p.Auto, s))(t)
	d.x = open(halo.NewExchanger(d.plan, set.Compiler, d.Field))(t)
	d.w = open(boundary.New(set.Compiler, d.Field, d.walls))(t)
	d.at = openStreams(t, p)
	start := take(t, d.Field)
	start.each(func(rank, v int, at domain.Vec) {
		start.set(rank, v, at, unset)
		if start.owned(rank).Contains(at) {
			start.set(rank, v, at, scatter(0, 0, v, at))
		}
	})
	start.put(t)
	return d
}

// agrees checks that all points that are set have the value of their place; others may have any value.
func (d walled) agrees(t *rapid.T, got *picture, isSet func(component, rank int, at domain.Vec) bool) {
	want := got.copyOf()
	parts, _ := want.parts()
	want.each(func(rank, v int, at domain.Vec) {
		number, q := behind(d.Cut.Grid, &d.walls, at)
		switch {
		case !isSet(v/parts, rank, at):
		case number != nil:
			want.set(rank, v, at, wallValue(want, number, v))
		default:
			want.set(rank, v, at, scatter(0, 0, v, q))
		}
	})
	same(t, got, want)
}

// Over random fields of all widths, decompositions and mixtures of boundary conditions, every ghost,
// including corners, has the value of its place after an exchange and the boundary conditions.
func TestBoundaryAgreesWithGeometry(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			d := drawWalled(t, set, func(s *halo.Spec) { s.Connectivity = halo.Corners })
			done(t, d.at, d.x.Exchange(d.at), d.w.Set(d.at))
			got := take(t, d.Field)
			d.agrees(t, got, func(component, rank int, at domain.Vec) bool { return isSet(d.Field, component, rank, at) })
		})
	})
}

// Sweep kernels that store into ghosts store the values that an exchange and the boundary conditions set, in
// all ghosts that are read. No two stores disagree about a ghost.
func TestStoresAgreeWithGeometry(t *testing.T) {
	set := testdevices.Host(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		d := drawWalled(t, set, func(*halo.Spec) {})
		for rank, s := range d.at {
			done(t, []*streams.Stream{s}, d.w.SetFixed(rank, s))
		}
		got := take(t, d.Field)
		parts, _ := got.parts()
		for rank := range d.Parts {
			for array := range got.arrays() {
				stores, ok := d.w.Stores(rank, domain.Radius{}, d.plan, 0, array)
				if !ok {
					t.Fatal("no stores")
				}
				for _, store := range stores {
					eachPoint(store.Send, func(from domain.Vec) {
						to := store.Ghost.Lo.Add(from.Sub(store.Send.Lo))
						for v := array * parts; v < got.values() && (!d.Spec.SoA || v < (array+1)*parts); v++ {
							value, before := got.get(rank, v, from), got.get(store.To, v, to)
							if before != unset && before != value {
								t.Fatalf("subdomain %d and others store %v and %v into point %v of %d",
									rank, value, before, to, store.To)
							}
							got.set(store.To, v, to, value)
						}
					})
				}
			}
		}
		d.agrees(t, got, func(component, rank int, at domain.Vec) bool {
			own, beyond := got.owned(rank), 0
			for a := range at {
				if at[a] < own.Lo[a] || at[a] >= own.Hi[a] {
					beyond++
				}
			}
			return beyond <= 1+int(d.Spec.Connectivity) && isSet(d.Field, component, rank, at)
		})
	})
}

// A face without a condition keeps its ghosts.
func TestBoundaryLeavesOtherFacesAlone(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		f := openField(t, place(t, set, []int{4, 3}, [3]bool{}, domain.Vec{1, 1, 1}), star(2))
		w := open(boundary.New(set.Compiler, f, boundary.Faces{{Kind: boundary.Dirichlet, Values: []float64{7}}}))(t)
		setsSevenAtX(t, f, w)
	})
}

// setsSevenAtX fails the test unless all ghosts at the low end of x become 7 and everything else stays.
func setsSevenAtX(t *testing.T, f *halo.Field, w *boundary.Ghosts) {
	t.Helper()
	want := take(t, f)
	want.each(func(rank, v int, at domain.Vec) { want.set(rank, v, at, scatter(0, rank, v, at)) })
	want.put(t)
	at := openStreams(t, f.Placement)
	done(t, at, w.Set(at))
	want.each(func(rank, v int, at domain.Vec) {
		if at[0] < 0 {
			want.set(rank, v, at, 7)
		}
	})
	same(t, take(t, f), want)
}

// A profile sets nothing at a face behind which the field has no ghosts.
func TestProfileWithoutGhosts(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		for _, size := range [][]int{{4, 4, 4}, {4, 4}} {
			s := star(len(size))
			s.Width = domain.Radius{Minus: domain.Vec{1}}
			f := openField(t, place(t, set, size, [3]bool{}, domain.Vec{1, 1, 1}), s)
			w := open(boundary.New(set.Compiler, f, boundary.All(boundary.Condition{
				Kind: boundary.Dirichlet, Uniform: true,
				Profile: func() boundary.Profile {
					return func(values []float64, _ domain.Vec, _ float64) { values[0] = 7 }
				},
			})))(t)
			setsSevenAtX(t, f, w)
		}
	})
}

// Boundary values at the limits of the element type are accepted.
func TestBoundaryAtTheEndsOfTheRange(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		for _, c := range []struct {
			element domain.Element
			value   float64
		}{
			{halo.Int32, math.MinInt32}, {halo.Int32, math.MaxInt32}, {halo.Int64, math.MinInt64},
			{halo.Float32, math.MaxFloat32}, {halo.Float32, math.Inf(-1)}, {halo.Float64, math.MaxFloat64},
		} {
			s := star(2)
			s.Element = c.element
			f := openField(t, place(t, set, []int{1, 3}, [3]bool{}, domain.Vec{1, 1, 1}), s)
			w := open(boundary.New(set.Compiler, f, boundary.Faces{{Kind: boundary.Dirichlet, Values: []float64{c.value}}}))(t)
			at := openStreams(t, f.Placement)
			done(t, at, w.Set(at))
			if got := take(t, f).get(0, 0, domain.Vec{-1, 2, 0}); got != c.value {
				t.Errorf("a boundary of %s has %v, want %v", c.element, got, c.value)
			}
		}
	})
}

// Goroutines that share a large face compute what one does, and a uniform profile is evaluated once per step.
func TestProfilesOfLargeFaces(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		f := openField(t, place(t, set, []int{301, 173, 3}, [3]bool{true, false, false}, domain.Vec{1, 1, 1}), star(3))
		var walls boundary.Faces
		asked := 0 // evaluations for z+; z- is evaluated by several goroutines
		walls[4] = boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile {
			shared := []float64{0} // by calls of one goroutine, checked by the race detector
			return func(values []float64, at domain.Vec, t float64) {
				shared[0]++
				for i := range values {
					values[i] = float64(1000*at[1]+at[0]+i) + t
				}
			}
		}}
		walls[5] = boundary.Condition{Kind: boundary.Dirichlet, Uniform: true, Profile: func() boundary.Profile {
			return func(values []float64, _ domain.Vec, t float64) {
				asked += len(values)
				values[0] = -t
			}
		}}
		w := open(boundary.New(set.Compiler, f, walls))(t)
		at := openStreams(t, f.Placement)
		for step := range int64(3) {
			now := 0.25 * float64(step)
			done(t, at, w.Move(0, at[0], step, now))
			got := take(t, f)
			for y := range 173 {
				for x := range 301 {
					low, high := got.get(0, 0, domain.Vec{x, y, -1}), got.get(0, 0, domain.Vec{x, y, 3})
					if low != float64(1000*y+x)+now || high != -now {
						t.Fatalf("at %d, %d and time %g boundaries have %g and %g", x, y, now, low, high)
					}
				}
			}
			if asked != int(step)+1 {
				t.Fatalf("a uniform profile was evaluated %d times in %d steps", asked, step+1)
			}
		}
	})
}

func TestBoundaryErrors(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{4, 4, 4}, [3]bool{false, true, false}, domain.Vec{1, 1, 2})
	wide, whole, bytes, single := star(3), star(3), star(3), star(3)
	single.Element = halo.Float32
	wide.Width.Plus[2], wide.Width.Minus[0] = 0, 5
	whole.Element, bytes.Element = halo.Int32, domain.Bytes(4)
	number := func(v ...float64) boundary.Condition { return boundary.Condition{Kind: boundary.Dirichlet, Values: v} }
	profile := func() boundary.Profile { return func([]float64, domain.Vec, float64) {} }
	for _, c := range []struct {
		name, says string
		spec       halo.Spec
		left       boundary.Condition
	}{
		{"no kind", `must be one of ["" "custom" "dirichlet" "flux" "neumann" "outflow" "robin"], got "wall"`, star(3), boundary.Condition{Kind: "wall"}},
		{"too many values", "must have one value or one per component (1), got 2", star(3), number(1, 2)},
		{"a fraction for integers", "must be a number of type int32, got 1.5", whole, number(1.5)},
		{"too large a number", "must be a number of type int32, got 2.147", whole, number(1 << 31)},
		{"NaN for integers", "Values must not be NaN, got [NaN]", whole, number(math.NaN())},
		{"a real beyond the largest", "must be a number of type float32, got 1e+39", single, number(1e39)},
		{"elements that are not numbers", `must be a number, got "4 bytes"`, bytes, number(1)},
		{"too many layers to mirror", "owns 4 layers along x, must own at least 5 to mirror them", wide, boundary.Condition{Kind: boundary.Neumann}},
		{"an odd reflection of too many layers", "Odd: must have at most 2 layers of ghosts, got 5", wide, boundary.Condition{Kind: boundary.Dirichlet, Odd: true}},
		{"a profile of integers", "elements, got \"int32\"", whole, boundary.Condition{Kind: boundary.Dirichlet, Profile: profile}},
		{"a profile of many layers", "Profile: must have at most 1 layer of ghosts unless Odd, got 5", wide, boundary.Condition{Kind: boundary.Dirichlet, Profile: profile}},
		{"values and a profile", "must have Values or a Profile, got both", star(3), boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{1}, Profile: profile}},
		{"a slope without a spacing", "spacing of a neumann face must be positive, got 0", star(3), boundary.Condition{Kind: boundary.Neumann, Profile: profile}},
		{"no denominator", "the denominator of a robin face, 3/d + -12/2 with d = 0.5, must not be 0", star(3),
			boundary.Condition{Kind: boundary.Robin, Spacing: 0.5, Diffusivity: 3, Transfer: -12, Values: []float64{1}}},
		{"a transfer without a profile", `Transfers must be set only for kind "robin" with a Profile`, star(3),
			boundary.Condition{Kind: boundary.Robin, Spacing: 0.5, Values: []float64{1}, Transfers: profile}},
		{"a transfer without a denominator", "face x- of field \"u\": ghost [-1 0 0]: the denominator of a robin face, 3/d + -12/2 with d = 0.5, must not be 0",
			star(3), boundary.Condition{Kind: boundary.Robin, Spacing: 0.5, Diffusivity: 3, Steady: true, Profile: profile,
				Transfers: func() boundary.Profile { return func(h []float64, _ domain.Vec, _ float64) { h[0] = -12 } }}},
		{"a flux of no size", `Values or Profile must be set for kind "flux"`, star(3), boundary.Condition{Kind: boundary.Flux, Spacing: 1}},
		{"a flux of whole numbers", "values of a flux face need float32 or float64 elements, got \"int32\"", whole, boundary.Condition{Kind: boundary.Flux, Spacing: 1, Values: []float64{1}}},
		{"a flux of no number", "not finite", star(3), boundary.Condition{Kind: boundary.Flux, Spacing: 1, Steady: true,
			Profile: func() boundary.Profile { return func(v []float64, _ domain.Vec, _ float64) { v[0] = math.NaN() } }}},
		{"steady values of ghosts", "Steady must not be set", star(3), boundary.Condition{Kind: boundary.Dirichlet, Profile: profile, Steady: true}},
		{"values of a copy", `must not be set for kind "outflow"`, star(3), boundary.Condition{Kind: boundary.Outflow, Values: []float64{1}}},
		{"a profile of no kind", `must not be set for kind ""`, star(3), boundary.Condition{Profile: profile}},
		{"NaN", "Values must not be NaN, got [NaN]", star(3), number(math.NaN())},
		{"no kernel", "Kernel must not be nil", star(3), boundary.Condition{Kind: boundary.Custom}},
	} {
		refuses(t, c.name, errorOf(boundary.New(set.Compiler, openField(t, p, c.spec), boundary.Faces{c.left})), c.says)
	}
}
