package halo_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

var paths = []p2p.Path{p2p.Peer, p2p.Staged, p2p.Direct}

// Over random grids, cuts, fields and paths, every owned point gets the sum of the
// ghosts that stand for it, twice over two exchanges, and no ghost changes.
func TestAccumulatorAddsEveryImage(t *testing.T) {
	testdevices.Each(t, 5, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPlace(t, set, 9)
			var specs []halo.Spec
			for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
				specs = append(specs, drawNumbers(t, i, p))
			}
			plan := must(halo.NewPlan(p, set.Links, rapid.SampledFrom(paths).Draw(t, "path"), specs...))(t)
			var fields []*halo.Field
			var want []*picture
			for i, s := range specs {
				f := openField(t, p, s)
				before := take(t, f)
				before.each(func(rank, v int, at domain.Vec) { before.set(rank, v, at, scatter(i, rank, v, at)) })
				before.put(t)
				fields, want = append(fields, f), append(want, twiceAdded(before))
			}
			reverse := open(halo.NewAccumulator(plan, set.Compiler, fields...))(t)
			at := openStreams(t, p)
			done(t, at, reverse.Exchange(at), reverse.Start(at), reverse.Wait(at))
			for i, f := range fields {
				same(t, take(t, f), want[i])
			}
		})
	})
}

// A face that is returned as it lies, with the padding and the ghosts of walls
// between its rows, is added as one that is packed.
func TestAccumulatorOfContiguousFaces(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{5, 4, 6}, [3]bool{}, domain.Vec{1, 1, 2})
		s := halo.Spec{Name: "u", Element: halo.Int32, Width: domain.UniformRadius(3, 2)}
		for _, path := range paths {
			t.Run(fmt.Sprintf("path=%s", path), func(t *testing.T) {
				plan := must(halo.NewPlan(p, set.Links, path, s))(t)
				if !plan.Messages[0].Contiguous {
					t.Fatal("the face is not contiguous")
				}
				f := openField(t, p, s)
				before := take(t, f)
				before.each(func(rank, v int, at domain.Vec) { before.set(rank, v, at, scatter(0, rank, v, at)) })
				before.put(t)
				reverse := open(halo.NewAccumulator(plan, set.Compiler, f))(t)
				at := openStreams(t, p)
				done(t, at, reverse.Exchange(at), reverse.Exchange(at))
				same(t, take(t, f), twiceAdded(before))
			})
		}
	})
}

// twiceAdded returns the picture with every ghost added twice to its image.
func twiceAdded(before *picture) *picture {
	after := before.copyOf()
	parts, _ := before.parts()
	before.each(func(rank, v int, at domain.Vec) {
		if owner, q, ok := imageOf(before.field, v/parts, before.owned(rank), at); ok {
			after.set(owner, v, q, after.get(owner, v, q)+2*before.get(rank, v, at))
		}
	})
	return after
}

// The reverse exchange is the adjoint of the exchange: with E the ghosts that an
// exchange makes of owned points, and R what a reverse one makes of ghosts,
// E(u).g = u.R(g).
func TestAccumulatorIsTheAdjoint(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPlace(t, set, 9)
			s := drawNumbers(t, 0, p)
			plan := must(halo.NewPlan(p, set.Links, rapid.SampledFrom(paths).Draw(t, "path"), s))(t)
			f, g := openField(t, p, s), openField(t, p, s)
			forward := open(halo.NewExchanger(plan, set.Compiler, f))(t)
			reverse := open(halo.NewAccumulator(plan, set.Compiler, g))(t)
			u, ghosts := take(t, f), take(t, g)
			u.each(func(rank, v int, at domain.Vec) {
				owned := u.owned(rank).Contains(at)
				u.set(rank, v, at, 0)
				ghosts.set(rank, v, at, 0)
				if owned {
					u.set(rank, v, at, scatter(1, rank, v, at))
				} else {
					ghosts.set(rank, v, at, scatter(2, rank, v, at))
				}
			})
			u.put(t)
			ghosts.put(t)
			at := openStreams(t, p)
			done(t, at, forward.Exchange(at), reverse.Exchange(at))
			eu, rg := take(t, f), take(t, g)
			var left, right float64
			u.each(func(rank, v int, at domain.Vec) {
				if u.owned(rank).Contains(at) {
					right += u.get(rank, v, at) * rg.get(rank, v, at)
				} else {
					left += eu.get(rank, v, at) * ghosts.get(rank, v, at)
				}
			})
			if left != right {
				t.Fatalf("E(u).g = %v, u.R(g) = %v", left, right)
			}
		})
	})
}

// Points at edges and corners are images of several ghosts; sums that are rounded
// have the same bits every time.
func TestAccumulatorKeepsItsOrder(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{6, 6, 6}, [3]bool{true, true, true}, domain.Vec{2, 2, 1})
		s := halo.Spec{Name: "u", Element: halo.Float32, Width: domain.UniformRadius(3, 2), Connectivity: halo.Corners}
		for _, path := range paths {
			t.Run(fmt.Sprintf("path=%s", path), func(t *testing.T) {
				plan := must(halo.NewPlan(p, set.Links, path, s))(t)
				f := openField(t, p, s)
				reverse := open(halo.NewAccumulator(plan, set.Compiler, f))(t)
				at := openStreams(t, p)
				before := take(t, f)
				before.each(func(rank, v int, at domain.Vec) { before.set(rank, v, at, 1/(1+scatter(3, rank, v, at))) })
				var first *picture
				for range 5 {
					before.put(t)
					done(t, at, reverse.Exchange(at))
					if got := take(t, f); first == nil {
						first = got
					} else {
						same(t, got, first)
					}
				}
			})
		}
	})
}
