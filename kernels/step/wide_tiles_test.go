package step_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
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
	exchange    int // steps between two
	sides       string
	values      kernels.Real // the type of values
}

func (c wideCase) String() string {
	return fmt.Sprintf("size=%v/parts=%v/steps=%d/sides=%s/type=%s", c.size, c.parts, c.exchange, c.sides, c.values)
}

// wideGrid is such a grid on devices.
type wideGrid[T rows.Float] struct {
	wideCase
	rig
	cut   *domain.Decomposition
	first []T // of the whole grid, x fastest
}

func newWideGrid[T rows.Float](t *testing.T, set *testdevices.Set, c wideCase, seed int) *wideGrid[T] {
	t.Helper()
	dims, size := 3, c.size[:]
	g := &wideGrid[T]{wideCase: c, rig: rig{t: t, real: c.values, exchange: c.exchange}}
	g.stencil = stencil.StarWeights{Dims: 3, Centre: 0.4, Axis: [3]float64{0.11, 0.09, 0.1}}.Stencil()
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
	width := domain.UniformRadius(dims, c.exchange)
	for rank, s := range g.cut.Subdomains {
		d := set.Devices[rank]
		one := step.TileRank{Device: d}
		l := kerneltest.Must(domain.NewLayout(s.Box, width, int(unsafe.Sizeof(T(0)))))(t)
		for f := range one.Fields {
			m := kerneltest.Must(d.Alloc(l.Bytes()))(t)
			t.Cleanup(func() { m.Close() })
			one.Fields[f] = kernels.Array{Data: m.All(), Layout: l}
		}
		whole := kernels.GhostStore{Send: s.Box, Ghost: s.Box, To: rank}
		one.Stores = g.mirrored(rank, domain.Direction{}, whole)
		for _, dir := range domain.Directions(dims) {
			if to, ok := g.cut.Neighbour(rank, dir); ok {
				st := kernels.GhostStore{Send: domain.SendBox(s.Box, dir, width), Ghost: domain.GhostBox(g.cut.Subdomains[to].Box, dir.Opposite(), width), To: to}
				one.Stores = append(append(one.Stores, st), g.mirrored(rank, dir, st)...)
			}
		}
		g.add(set, rank, len(g.cut.Subdomains), one)
	}
	return g
}

// mirrored returns what of a store in a direction also lies behind mirrors at a rank.
func (g *wideGrid[T]) mirrored(rank int, dir domain.Direction, s kernels.GhostStore) (all []kernels.GhostStore) {
	one := domain.UniformRadius(3, 1)
	for i, side := range domain.Faces(g.cut.Grid.Dims) {
		if _, inside := g.cut.Neighbour(rank, side); !inside && g.sides[i] == 'm' && dir[side.Axis()] == 0 {
			all = append(all, kernels.GhostStore{Send: domain.SendBox(s.Send, side, one), Ghost: domain.GhostBox(s.Ghost, side, one), To: s.To})
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
			to[p[0]+g.size[0]*(p[1]+g.size[1]*p[2])] = kerneltest.Apply(g.stencil, func(o domain.Vec) T { return g.at(from, p.Add(o)) })
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
	steps, left := g.steps(g.group(kerneltest.Limit))
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

// randomWide is a case of any size, cut for up to so many devices, walls and type.
func randomWide(r *rand.Rand, devices, most int) (c wideCase) {
	for {
		dims := 2 + r.IntN(2)
		c = wideCase{size: domain.Vec{1, 1, 1}, parts: domain.Vec{1, 1, 1}, exchange: 2 + r.IntN(3), values: []kernels.Real{kernels.Float64, kernels.Float32}[r.IntN(2)]}
		suits := true
		for a := range dims {
			c.size[a], c.parts[a] = 1+r.IntN(most), 1+r.IntN(3)
			pair := []string{"pp", "vv", "mm", "vm", "mv"}[r.IntN(5)]
			c.sides += pair
			suits = suits && (c.parts[a] == 1 && pair != "pp" || c.size[a]/c.parts[a] >= c.exchange)
		}
		if suits && int(c.parts.Product()) <= devices {
			return c
		}
	}
}

// launches are some of any number of steps.
func launches(r *rand.Rand) (all []int64) {
	for range 3 + r.IntN(4) {
		all = append(all, 1+int64(r.IntN(9)))
	}
	return all
}

// Tiles with wide ghosts give the bits and norms of plain loops, and leave all ghosts of the fields: of any size, cut, walls and type, in
// launches of any number of steps, from odd and even steps and exchanges on, and across those of number 2^32; also where warps pause.
func TestWideTiles(t *testing.T) {
	eachGPU(t, 4, func(t *testing.T, set *testdevices.Set) {
		cases, most := 60, 40
		if testdevices.OnCPU(set.Devices[0]) {
			cases, most = len(testdevices.Again(3, testdevices.Some(3, testdevices.Numbers(18)))), 15
		}
		r := rand.New(rand.NewPCG(6, uint64(testdevices.Seed())))
		paused := kerneltest.Must(set.Disturbed(func(*streams.Device) []string { return []string{"PAUSES"} }))(t)
		for n := range cases {
			c, of := randomWide(r, len(set.Devices), most), set
			if n%3 == 0 {
				of = paused
			}
			first, base := []int64{0, 5, 1<<32 - 5}[r.IntN(3)], []int64{0, 7, 1<<32 - 3}[r.IntN(3)]
			series := launches(r)
			t.Run(fmt.Sprintf("%d/%v/launches=%v/first=%d/exchange=%d", n, c, series, first, base), func(t *testing.T) {
				if c.values == kernels.Float32 {
					newWideGrid[float32](t, of, c, n).run(first, series, base)
				} else {
					newWideGrid[float64](t, of, c, n).run(first, series, base)
				}
			})
		}
	})
}

// A launch with checks has the norms of plain loops, ends where one of them says so, within a group too, and leaves the fields as they were then.
func TestWideTilesCheck(t *testing.T) {
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		for i, c := range testdevices.Again(1, testdevices.Some(1, []wideCase{
			{domain.Vec{9, 8, 11}, domain.Vec{1, 1, 2}, 3, "mmvmpp", kernels.Float64}, {domain.Vec{23, 31, 1}, domain.Vec{2, 1, 1}, 4, "ppvv", kernels.Float64},
			{domain.Vec{6, 7, 8}, domain.Vec{1, 1, 1}, 2, "vvppmv", kernels.Float64},
		})) {
			if int(c.parts.Product()) > len(set.Devices) {
				continue
			}
			t.Run(c.String(), func(t *testing.T) {
				g := newWideGrid[float64](t, set, c, i)
				_, norms := g.oracle(mostChecked)
				none := step.Checks{Every: 1, Tolerance: -1, Finite: true}
				g.check([]checkedRun{
					{9, none, 0},
					{7, step.Checks{Every: 1, Tolerance: norms[12].MaxChange}, 3},
					{3, none, 0},
					{1, step.Checks{Every: 2, Tolerance: math.Inf(1)}, 0},
					{8, step.Checks{Every: 1, Tolerance: math.Sqrt(norms[19].SumChange2.Value()), L2: true}, 6},
					{2, step.Checks{Every: 5, Tolerance: -1}, 0},
					{6, step.Checks{Until: 4, Every: 9, Tolerance: math.Inf(1)}, 1},
					{9, step.Checks{Until: 2, Every: 3, Tolerance: -1}, 0},
				}, norms)
				g.check([]checkedRun{ // that go on for longer than votes are waited for
					{1, none, 0},
					{30, step.Checks{Every: 1, Tolerance: norms[6].MaxChange}, 5},
					{30, step.Checks{Until: 1, Every: 2, Tolerance: -1, Finite: true}, 0},
					{16, step.Checks{Every: 1, Tolerance: math.Sqrt(norms[37].SumChange2.Value()), L2: true}, 6},
				}, norms)
			})
		}
	})
}

// check makes launches with checks, one after the other, and compares their norms and, after each, the fields.
func (g *wideGrid[T]) check(runs []checkedRun, want []reduce.Norms) {
	g.t.Helper()
	levels, _ := g.oracle(mostChecked)
	g.fill(0)
	g.rig.check(runs, want, func(what string, made int64) { g.compare(what, levels, made, 0) })
}

// What tiles with wide ghosts cannot make is told apart from what is wrong, with the reason.
func TestWideTileRefusals(t *testing.T) {
	set := testdevices.CPU(t, 2)
	for name, c := range map[string]struct {
		change func(g *wideGrid[float64])
		says   string
		other  bool // than ErrNoTiles
	}{
		"a large box": {change: func(g *wideGrid[float64]) {
			*g = *newWideGrid[float64](t, set, wideCase{domain.Vec{300, 300, 1}, domain.Vec{1, 2, 1}, 2, "vvvv", kernels.Float64}, 0)
		}, says: "do not fit twice into the shared memory of 8 multiprocessors, with ghosts 2 wide"},
		"host devices": {change: func(g *wideGrid[float64]) {
			*g = *newWideGrid[float64](t, testdevices.Host(t, 2), g.wideCase, 0)
		}, says: "only GPUs have tiles"},
		"no star": {change: func(g *wideGrid[float64]) {
			g.stencil = kerneltest.Must(stencil.HeatOf(stencil.Kinds(2)[1], []float64{1, 1}, 1, 0.1))(t)
		}, says: "must be a star"},
		"whole numbers":    {change: func(g *wideGrid[float64]) { g.real = "int32" }, says: "must be a star"},
		"no step":          {change: func(g *wideGrid[float64]) { g.rig.exchange = 0 }, says: "0 steps between two exchanges", other: true},
		"more steps":       {change: func(g *wideGrid[float64]) { g.rig.exchange = 3 }, says: "which is not all of"},
		"no device":        {change: func(g *wideGrid[float64]) { g.ranks[1].Device = nil }, says: "no device", other: true},
		"two on a device":  {change: func(g *wideGrid[float64]) { g.ranks[1].Device = g.ranks[0].Device }, says: "two ranks", other: true},
		"no edges":         {change: func(g *wideGrid[float64]) { g.ranks[0].Stores = g.ranks[0].Stores[:4] }, says: "nothing is stored into the ghosts"},
		"a store twice":    {change: func(g *wideGrid[float64]) { g.ranks[0].Stores = append(g.ranks[0].Stores, g.ranks[0].Stores[0]) }, says: "or is a second one"},
		"a part of a side": {change: func(g *wideGrid[float64]) { g.ranks[0].Stores[0].Send.Hi[1]--; g.ranks[0].Stores[0].Ghost.Hi[1]-- }, says: "which is not all of"},
		"an odd wall":      {change: func(g *wideGrid[float64]) { g.ranks[0].Stores[0].Odd = []domain.Vec{{1}} }, says: "which no tile sends"},
		"a store beside a wall that stays": {change: func(g *wideGrid[float64]) {
			corner := g.ranks[1].Fields[0].Layout.Owned
			ghost := domain.GhostBox(corner, domain.Direction{1, 1, 0}, domain.UniformRadius(2, 1))
			g.ranks[1].Stores = append(g.ranks[1].Stores, kernels.GhostStore{Send: domain.SendBox(corner, domain.Direction{1, 1, 0}, domain.UniformRadius(2, 1)), Ghost: ghost, To: 1})
		}, says: "beside a wall whose ghosts keep their values"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newWideGrid[float64](t, set, wideCase{domain.Vec{16, 16, 1}, domain.Vec{1, 2, 1}, 2, "ppvv", kernels.Float64}, 0)
			c.change(g)
			group, err := step.NewTileGroup(g.all[0].Compiler, g.stencil, g.real, sums.Reproducible, g.ranks, g.rig.exchange, kerneltest.Limit)
			if err == nil {
				group.Close()
				t.Fatal("they were accepted")
			}
			if errors.Is(err, step.ErrNoTiles) == c.other || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, not %q", err, c.says)
			}
		})
	}
}
