package step_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// gridCase is a grid shared by devices, the number of steps between exchanges, and the kind of each side, x-, x+,
// y-, ...: periodic (p), mirror (m) or fixed values (v).
type gridCase struct {
	size, parts domain.Vec
	exchange    int // steps between exchanges
	sides       string
	values      domain.Element // the type of values
	inRegisters bool           // whether registers hold a part of the tiles; with an exchange after each step
}

func (c gridCase) String() string {
	return fmt.Sprintf("size=%v/parts=%v/steps=%d/sides=%s/type=%s", c.size, c.parts, c.exchange, c.sides, c.values)
}

// tileGrid is such a grid on devices.
type tileGrid[T rows.Float] struct {
	gridCase
	rig
	cut   *domain.Decomposition
	first []T // of the whole grid, x fastest
}

// rowCase is a box divided over devices along its slowest axis, periodically, with an exchange after each step. It
// is also periodic along x. In three dimensions the low side of y is a mirror, and ghosts at the high side keep
// their values.
func rowCase(size domain.Vec, devices int, real domain.Element) gridCase {
	c := gridCase{size: size, parts: domain.Vec{1, 1, devices}, exchange: 1, sides: "ppmvpp", values: real}
	if size[2] == 1 {
		c.parts, c.sides = domain.Vec{1, devices, 1}, "pppp"
	}
	return c
}

// newTileRow returns the grid of a rowCase.
func newTileRow(t *testing.T, set *testdevices.Set, devices int, size domain.Vec) *tileGrid[float64] {
	t.Helper()
	return newTileGrid[float64](t, set, rowCase(size, devices, domain.Float64), 0)
}

func newTileGrid[T rows.Float](t *testing.T, set *testdevices.Set, c gridCase, seed int) *tileGrid[T] {
	t.Helper()
	dims, size := 3, c.size[:]
	g := &tileGrid[T]{gridCase: c, rig: rig{t: t, real: c.values, exchange: c.exchange}}
	g.stencil = stencil.StarWeights{Dims: 3, Center: 0.4, Axis: [3]float64{0.11, 0.09, 0.1}}.Stencil()
	if len(c.sides) == 4 {
		dims, size = 2, c.size[:2]
		g.stencil = stencil.StarWeights{Dims: 2, Equal: true, Center: 0.2, Axis: [3]float64{0.2, 0.2}}.Stencil()
	}
	var periodic [3]bool
	for a := range dims {
		periodic[a] = c.sides[2*a] == 'p'
	}
	g.cut = test.Must(domain.Decompose(test.Must(domain.NewGrid(size, periodic[:len(size)]))(t), c.parts))(t)
	random := rand.New(rand.NewPCG(uint64(seed), 11))
	for range c.size.Product() {
		g.first = append(g.first, T(random.Float64()))
	}
	width := domain.UniformRadius(dims, c.exchange)
	for rank, s := range g.cut.Subdomains {
		d := set.Devices[rank]
		one := step.TileRank{Device: d}
		l := test.Must(domain.NewLayout(s.Box, width, int(unsafe.Sizeof(T(0)))))(t)
		for f := range one.Fields {
			m := test.Must(d.Alloc(l.Bytes()))(t)
			t.Cleanup(func() { m.Close() })
			one.Fields[f] = kernels.Array{Data: m.All(), Layout: l}
		}
		whole := kernels.GhostStore{Send: s.Box, Ghost: s.Box, To: rank}
		one.Stores = g.mirrored(rank, domain.Direction{}, whole)
		for _, dir := range domain.Directions(dims) {
			if to, ok := g.cut.Neighbor(rank, dir); ok && (c.exchange > 1 || dir.Axis() >= 0) {
				st := kernels.GhostStore{Send: domain.SendBox(s.Box, dir, width), Ghost: domain.GhostBox(g.cut.Subdomains[to].Box, dir.Opposite(), width), To: to}
				if one.Stores = append(one.Stores, st); c.exchange > 1 {
					one.Stores = append(one.Stores, g.mirrored(rank, dir, st)...)
				}
			}
		}
		g.add(set, rank, len(g.cut.Subdomains), one)
	}
	return g
}

// mirrored returns the stores into mirror ghosts of a rank that correspond to a store in a direction.
func (g *tileGrid[T]) mirrored(rank int, dir domain.Direction, s kernels.GhostStore) (all []kernels.GhostStore) {
	one := domain.UniformRadius(3, 1)
	for i, side := range domain.Faces(g.cut.Grid.Dims) {
		if _, inside := g.cut.Neighbor(rank, side); !inside && g.sides[i] == 'm' && dir[side.Axis()] == 0 {
			all = append(all, kernels.GhostStore{Send: domain.SendBox(s.Send, side, one), Ghost: domain.GhostBox(s.Ghost, side, one), To: s.To})
		}
	}
	return all
}

// at returns the value of the grid at a point that may be outside; NaN if no step may read it.
func (g *tileGrid[T]) at(v []T, p domain.Vec) T {
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

// oracle returns the levels and norms after each of the steps, by plain loops over the whole grid. Level 0 is the
// initial one.
func (g *tileGrid[T]) oracle(steps int64) (levels [][]T, norms []reduce.Norms) {
	levels, norms = [][]T{g.first}, make([]reduce.Norms, steps+1)
	for n := range steps {
		from, to := levels[n], make([]T, len(g.first))
		eachPointConcurrently(g.cut.Grid.Box(), func(p domain.Vec) {
			to[p[0]+g.size[0]*(p[1]+g.size[1]*p[2])] = kerneltest.Apply(g.stencil, func(o domain.Vec) T { return g.at(from, p.Add(o)) })
		})
		rows.AddRow(&norms[n+1], to, from, sums.Reproducible)
		levels = append(levels, to)
	}
	return levels, norms
}

// fill sets one field of all ranks to level 0 including ghosts, of mirror ghosts only those read by the first
// step, and the other field to NaN, except for ghosts with fixed values.
func (g *tileGrid[T]) fill(parity int64) {
	for i, rank := range g.ranks {
		l := rank.Fields[0].Layout
		good, bad := make([]T, l.Length), make([]T, l.Length)
		for n := range good {
			good[n], bad[n] = T(math.NaN()), T(math.NaN())
		}
		kerneltest.EachPoint(l.Owned.Grow(l.Width), func(p domain.Vec) {
			if g.gridCase.exchange == 1 || !g.behind(p, 'm') {
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

// behind reports whether a point is behind a side of a kind.
func (g *tileGrid[T]) behind(p domain.Vec, kind byte) bool {
	for a := range g.cut.Grid.Dims {
		if p[a] < 0 && g.sides[2*a] == kind || p[a] >= g.size[a] && g.sides[2*a+1] == kind {
			return true
		}
	}
	return false
}

// compare compares owned points and all stored ghosts with a level, and owned points with the level before it.
func (g *tileGrid[T]) compare(what string, levels [][]T, made, first int64) {
	g.t.Helper()
	for i, rank := range g.ranks {
		l := rank.Fields[0].Layout
		last := kerneltest.Get[T](g.all[i], rank.Fields[(first+made)%2].Data)
		check := func(values []T, level int64, box domain.Box) {
			kerneltest.EachPoint(box, func(p domain.Vec) {
				if got, want := values[l.Offset(p)], g.at(levels[level], p); got != want {
					g.t.Fatalf("%s: rank %d: got %v at %v after %d steps, want %v", what, i, got, p, level, want)
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

// run runs the case with values of its type, see tileGrid.run.
func (c gridCase) run(t *testing.T, set *testdevices.Set, seed int, first int64, launches []int64, base int64) {
	t.Helper()
	if c.values == domain.Float32 {
		newTileGrid[float32](t, set, c, seed).run(first, launches, base)
	} else {
		newTileGrid[float64](t, set, c, seed).run(first, launches, base)
	}
}

// run runs steps in launches of the given lengths, the second and the last with norms, and compares with plain
// loops after each launch.
func (g *tileGrid[T]) run(first int64, launches []int64, base int64) {
	g.t.Helper()
	all := int64(0)
	for _, n := range launches {
		all += n
	}
	levels, norms := g.oracle(all)
	g.fill(first)
	group := g.group(kerneltest.Limit)
	for i := range g.ranks {
		if g.gridCase.exchange == 1 && group.InRegisters(i) != g.inRegisters {
			g.t.Fatalf("registers hold a part: got %v", !g.inRegisters)
		}
	}
	steps, left := g.steps(group)
	made := int64(0)
	for n, count := range launches {
		measured := n == 1 || n == len(launches)-1
		for i, s := range steps {
			if n == 0 {
				s.Number(base)
			}
			test.Check(g.t, s.Queue(g.all[i].Stream, first+made+1, count, measured))
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
				g.t.Fatalf("norms after launches of %d: got %+v, want %+v", launches[:n+1], sum, norms[made])
			}
		}
	}
}

// check runs launches with checks and compares their norms and, after each launch, the fields.
func (g *tileGrid[T]) check(runs []checkedRun, want []reduce.Norms) {
	g.t.Helper()
	levels, _ := g.oracle(mostChecked)
	g.fill(0)
	g.rig.check(runs, want, func(what string, made int64) { g.compare(what, levels, made, 0) })
}

// eachPointConcurrently calls f for the points of a box, with one goroutine per core.
func eachPointConcurrently(box domain.Box, f func(p domain.Vec)) {
	axis, parts := 1, runtime.GOMAXPROCS(0)
	if box.Size()[2] > box.Size()[1] {
		axis = 2
	}
	var all sync.WaitGroup
	for i := range parts {
		part := box
		n := box.Size()[axis]
		part.Lo[axis], part.Hi[axis] = box.Lo[axis]+n*i/parts, box.Lo[axis]+n*(i+1)/parts
		if !part.Empty() {
			all.Go(func() { kerneltest.EachPoint(part, f) })
		}
	}
	all.Wait()
}

// eachGPU runs f on all GPUs, and on n emulated GPUs.
func eachGPU(t *testing.T, n int, f func(t *testing.T, set *testdevices.Set)) {
	t.Run("backend=cuda", func(t *testing.T) { f(t, testdevices.GPUs(t)) })
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { f(t, testdevices.CPU(t, n)) })
}
