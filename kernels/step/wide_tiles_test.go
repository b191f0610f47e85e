package step_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// wideCase is a grid that devices share, so many steps between two exchanges, and what lies behind its sides, x-, x+, y-, ...: a period (p), a mirror (m) or
// values that stay (v).
type wideCase struct {
	size, parts domain.Vec
	steps       int
	sides       string
	real        kernels.Real
}

func (c wideCase) String() string {
	return fmt.Sprintf("size=%v/parts=%v/steps=%d/sides=%s/type=%s", c.size, c.parts, c.steps, c.sides, c.real)
}

// wideGrid is such a grid on devices.
type wideGrid[T rows.Float] struct {
	wideCase
	t       *testing.T
	cut     *domain.Decomposition
	stencil stencil.Stencil
	all     []*kerneltest.Bench // by rank
	ranks   []step.TileRank
	first   []T // of the whole grid, x fastest
}

func newWideGrid[T rows.Float](t *testing.T, set *testdevices.Set, c wideCase, seed int) *wideGrid[T] {
	t.Helper()
	dims, size := 3, c.size[:]
	g := &wideGrid[T]{wideCase: c, t: t, stencil: stencil.StarWeights{Dims: 3, Centre: 0.4, Axis: [3]float64{0.11, 0.09, 0.1}}.Stencil()}
	if len(c.sides) == 4 {
		dims, size = 2, c.size[:2]
		g.stencil = stencil.StarWeights{Dims: 2, Equal: true, Centre: 0.2, Axis: [3]float64{0.2, 0.2}}.Stencil()
	}
	var periodic [3]bool
	for a := range dims {
		periodic[a] = c.sides[2*a] == 'p'
	}
	g.cut = kerneltest.Must(domain.Decompose(kerneltest.Must(domain.NewGrid(size, periodic))(t), c.parts))(t)
	random := rand.New(rand.NewPCG(uint64(seed), 11))
	for range c.size.Product() {
		g.first = append(g.first, T(random.Float64()))
	}
	width := domain.UniformRadius(dims, c.steps)
	for rank, s := range g.cut.Subdomains {
		d := set.Devices[rank]
		one := step.TileRank{Device: d}
		l := kerneltest.Must(domain.NewLayout(s.Box, width, int(unsafe.Sizeof(T(0)))))(t)
		for f := range one.Fields {
			m := kerneltest.Must(d.Alloc(l.Bytes()))(t)
			t.Cleanup(func() { m.Close() })
			one.Fields[f] = kernels.Array{Data: m.All(), Layout: l}
		}
		for _, dir := range domain.Directions(dims) {
			if to, ok := g.cut.Neighbour(rank, dir); ok {
				st := kernels.GhostStore{Send: domain.SendBox(s.Box, dir, width), Ghost: domain.GhostBox(g.cut.Subdomains[to].Box, dir.Opposite(), width), To: to}
				one.Stores = append(one.Stores, st)
			}
		}
		one.Stores = append(one.Stores, g.mirrored(rank, one.Stores)...)
		g.ranks = append(g.ranks, one)
		g.all = append(g.all, kerneltest.NewBench(t, &testdevices.Set{Devices: set.Devices[rank:], Compiler: set.Compiler}))
		for _, peer := range set.Devices[:len(g.cut.Subdomains)] {
			if d != peer {
				kerneltest.Check(t, d.EnablePeer(peer))
			}
		}
	}
	return g
}

// mirrored returns the stores behind the mirrors at a rank: of its points, and of those that it sends.
func (g *wideGrid[T]) mirrored(rank int, sent []kernels.GhostStore) (all []kernels.GhostStore) {
	box := g.cut.Subdomains[rank].Box
	for i, side := range domain.Faces(g.cut.Grid.Dims) {
		if _, inside := g.cut.Neighbour(rank, side); inside || g.sides[i] != 'm' {
			continue
		}
		a, one := side.Axis(), domain.UniformRadius(3, 1)
		for _, s := range append([]kernels.GhostStore{{Send: box, Ghost: box, To: rank}}, sent...) {
			if s.Send.Lo[a] != box.Lo[a] || s.Send.Hi[a] != box.Hi[a] {
				continue
			}
			s.Send, s.Ghost = domain.SendBox(s.Send, side, one), domain.GhostBox(s.Ghost, side, domain.Radius{Minus: one.Minus, Plus: one.Plus})
			all = append(all, s)
		}
	}
	return all
}

// at returns the value of the grid at a place that may lie outside; NaN where no step may read it.
func (g *wideGrid[T]) at(v []T, p domain.Vec) T {
	beyond := 0
	kept := p
	for a := range g.cut.Grid.Dims {
		n := g.size[a]
		switch {
		case 0 <= p[a] && p[a] < n:
		case g.sides[2*a] == 'p':
			p[a] = (p[a]%n + n) % n
			kept[a] = p[a]
		case p[a] < -1 || p[a] > n || beyond > 0:
			return T(math.NaN())
		default:
			high := 0
			if p[a] == n {
				high = 1
			}
			if beyond++; g.sides[2*a+high] == 'v' {
				beyond += 2
			}
			p[a] = min(max(p[a], 0), n-1)
		}
	}
	if beyond > 1 {
		return T(kept[0]*7+kept[1]*13+kept[2]*29)/64 - 0.25
	}
	return v[p[0]+g.size[0]*(p[1]+g.size[1]*p[2])]
}

// oracle returns the levels and norms of so many steps, by plain loops over the whole grid. Level 0 is the first.
func (g *wideGrid[T]) oracle(steps int64) (levels [][]T, norms []reduce.Norms) {
	levels, norms = [][]T{g.first}, make([]reduce.Norms, steps+1)
	for n := range steps {
		from, to := levels[n], make([]T, len(g.first))
		eachPointBeside(g.cut.Grid.Box(), func(p domain.Vec) {
			u := T(T(g.stencil.Centre) * g.at(from, p))
			for _, group := range g.stencil.Groups {
				var sum T
				for i, part := range group.Parts {
					one := g.at(from, p.Add(part[0]))
					for _, o := range part[1:] {
						one += g.at(from, p.Add(o))
					}
					if i == 0 {
						sum = one
					} else {
						sum += one
					}
				}
				u += T(T(group.Weight) * sum)
			}
			to[p[0]+g.size[0]*(p[1]+g.size[1]*p[2])] = u
		})
		rows.AddRow(&norms[n+1], to, from, sums.Reproducible)
		levels = append(levels, to)
	}
	return levels, norms
}

// fill fills one field of all ranks with level 0 and its ghosts, but for those behind mirrors, and the other with what must not be read, but for
// ghosts whose values stay.
func (g *wideGrid[T]) fill(parity int64) {
	for i, rank := range g.ranks {
		l := rank.Fields[0].Layout
		good, bad := make([]T, l.Length), make([]T, l.Length)
		for n := range good {
			good[n], bad[n] = T(math.NaN()), T(math.NaN())
		}
		kerneltest.EachPoint(l.Owned.Grow(l.Width), func(p domain.Vec) {
			if !g.behind(p, 'm') {
				good[l.Offset(p)] = g.at(g.first, p)
			}
			if g.behind(p, 'v') {
				bad[l.Offset(p)] = g.at(g.first, p)
			}
		})
		kerneltest.Put(g.all[i], rank.Fields[parity%2].Data, good)
		kerneltest.Put(g.all[i], rank.Fields[1-parity%2].Data, bad)
	}
}

// behind reports whether a place lies behind a side of a kind.
func (g *wideGrid[T]) behind(p domain.Vec, kind byte) bool {
	for a := range g.cut.Grid.Dims {
		if p[a] < 0 && g.sides[2*a] == kind || p[a] >= g.size[a] && g.sides[2*a+1] == kind {
			return true
		}
	}
	return false
}

// group makes the tiles of all ranks.
func (g *wideGrid[T]) group(limit time.Duration) *step.WideTileGroup {
	g.t.Helper()
	group := kerneltest.Must(step.NewWideTileGroup(g.all[0].Compiler, g.stencil, g.real, sums.Reproducible, g.ranks, g.steps, limit))(g.t)
	g.t.Cleanup(func() {
		if err := group.Close(); err != nil {
			g.t.Error(err)
		}
	})
	return group
}

// ready makes the steps of all ranks, with room for norms.
func (g *wideGrid[T]) ready(group *step.WideTileGroup) (steps []*step.TileSteps, norms [][2]streams.Span) {
	g.t.Helper()
	for i, rank := range g.ranks {
		var both [2]streams.Span
		for f := range both {
			m := kerneltest.Must(rank.Device.Alloc(group.Tiles(i) * int64(unsafe.Sizeof(reduce.Norms{}))))(g.t)
			g.t.Cleanup(func() { m.Close() })
			both[f] = m.All()
		}
		norms, steps = append(norms, both), append(steps, kerneltest.Must(group.Steps(i, both))(g.t))
	}
	return steps, norms
}

// compare compares owned points and all ghosts that are stored with a level, and owned points with the one before it.
func (g *wideGrid[T]) compare(what string, levels [][]T, made, first int64) {
	g.t.Helper()
	for i, rank := range g.ranks {
		l := rank.Fields[0].Layout
		last := kerneltest.Get[T](g.all[i], rank.Fields[(first+made)%2].Data)
		check := func(values []T, level int64, box domain.Box) {
			kerneltest.EachPoint(box, func(p domain.Vec) {
				if got, want := values[l.Offset(p)], g.at(levels[level], p); got != want {
					g.t.Fatalf("%s: rank %d has %v at %v after %d steps, not %v", what, i, got, p, level, want)
				}
			})
		}
		check(last, made, l.Owned)
		for _, from := range g.ranks {
			for _, s := range from.Stores {
				if s.To == i {
					check(last, made, s.Ghost)
				}
			}
		}
		if made > 1 {
			check(kerneltest.Get[T](g.all[i], rank.Fields[(first+made-1)%2].Data), made-1, l.Owned)
		}
	}
}

// run makes steps by launches of so many each, the second and the last with norms, and compares them with plain loops after each.
func (g *wideGrid[T]) run(first int64, launches []int64, base int64) {
	g.t.Helper()
	all := int64(0)
	for _, n := range launches {
		all += n
	}
	levels, norms := g.oracle(all)
	g.fill(first)
	steps, left := g.ready(g.group(kerneltest.Limit))
	made := int64(0)
	for n, count := range launches {
		measured := n == 1 || n == len(launches)-1
		for i, s := range steps {
			if n == 0 {
				s.Number(base)
			}
			kerneltest.Check(g.t, s.Queue(g.all[i].Stream, first+made+1, count, measured))
		}
		made += count
		if n%2 > 0 && n < len(launches)-1 {
			continue // the next launch is queued behind this one
		}
		for i, b := range g.all {
			b.Do(b.Stream.Sync(kerneltest.Limit), steps[i].Err())
		}
		g.compare(fmt.Sprintf("launches of %d", launches[:n+1]), levels, made, first)
		if measured {
			var sum reduce.Norms
			for i, b := range g.all {
				sum.Add(total(kerneltest.Get[reduce.Norms](b, left[i][(first+made)%2])))
			}
			if !same(sum, norms[made]) {
				g.t.Fatalf("norms after launches of %d are %+v, not %+v", launches[:n+1], sum, norms[made])
			}
		}
	}
}

func TestWideTiles(t *testing.T) {
	eachGPU(t, 4, func(t *testing.T, set *testdevices.Set) {
		for i, c := range []wideCase{
			{domain.Vec{9, 8, 11}, domain.Vec{1, 1, 1}, 2, "vvvvvv", kernels.Float64},
			{domain.Vec{9, 8, 11}, domain.Vec{1, 1, 1}, 2, "mmvmpp", kernels.Float64},
			{domain.Vec{9, 8, 11}, domain.Vec{1, 1, 2}, 3, "mmvmpp", kernels.Float64},
		} {
			t.Run(c.String(), func(t *testing.T) { newWideGrid[float64](t, set, c, i).run(0, []int64{1, 2, 3, 7, 5, 4, 2}, 0) })
		}
	})
}
