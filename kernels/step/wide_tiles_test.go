package step_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// randomWide returns a case with random size, decomposition for up to the given devices, sides and type.
func randomWide(r *rand.Rand, devices, most int) (c gridCase) {
	for {
		dims := 2 + r.IntN(2)
		c = gridCase{size: domain.Vec{1, 1, 1}, parts: domain.Vec{1, 1, 1}, exchange: 2 + r.IntN(3), values: []domain.Element{domain.Float64, domain.Float32}[r.IntN(2)]}
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

// launches returns random launch lengths.
func launches(r *rand.Rand) (all []int64) {
	for range 3 + r.IntN(4) {
		all = append(all, 1+int64(r.IntN(9)))
	}
	return all
}

// Tiles with wide ghosts are bitwise identical to plain loops, including norms, and leave all ghosts valid, for
// any size, decomposition, sides and type. Launches have any number of steps, from odd and even steps and
// exchanges, and across number 2^32; also if warps pause.
func TestWideTiles(t *testing.T) {
	eachGPU(t, 4, func(t *testing.T, set *testdevices.Set) {
		cases, most := 60, 40
		if testdevices.OnCPU(set.Devices[0]) {
			cases, most = len(testdevices.Again(3, testdevices.Some(3, testdevices.Numbers(18)))), 15
		}
		r := rand.New(rand.NewPCG(6, uint64(testdevices.Seed())))
		paused := test.Must(set.Disturbed(func(*streams.Device) []string { return []string{"PAUSES"} }))(t)
		for n := range cases {
			c, of := randomWide(r, len(set.Devices), most), set
			if n%3 == 0 {
				of = paused
			}
			first, base := []int64{0, 5, 1<<32 - 5}[r.IntN(3)], []int64{0, 7, 1<<32 - 3}[r.IntN(3)]
			series := launches(r)
			t.Run(fmt.Sprintf("%d/%v/launches=%v/first=%d/exchange=%d", n, c, series, first, base), func(t *testing.T) {
				c.run(t, of, n, first, series, base)
			})
		}
	})
}

// A launch with checks has the norms of plain loops, ends at the requested check, also within a group, and then
// leaves the fields unchanged.
func TestWideTilesCheck(t *testing.T) {
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		for i, c := range testdevices.Again(1, testdevices.Some(1, []gridCase{
			{domain.Vec{9, 8, 11}, domain.Vec{1, 1, 2}, 3, "mmvmpp", domain.Float64, false}, {domain.Vec{23, 31, 1}, domain.Vec{2, 1, 1}, 4, "ppvv", domain.Float64, false},
			{domain.Vec{6, 7, 8}, domain.Vec{1, 1, 1}, 2, "vvppmv", domain.Float64, false},
		})) {
			if int(c.parts.Product()) > len(set.Devices) {
				continue
			}
			t.Run(c.String(), func(t *testing.T) {
				g := newTileGrid[float64](t, set, c, i)
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
				g.check([]checkedRun{ // these run for longer than the limit of votes
					{1, none, 0},
					{30, step.Checks{Every: 1, Tolerance: norms[6].MaxChange}, 5},
					{30, step.Checks{Until: 1, Every: 2, Tolerance: -1, Finite: true}, 0},
					{16, step.Checks{Every: 1, Tolerance: math.Sqrt(norms[37].SumChange2.Value()), L2: true}, 6},
				}, norms)
			})
		}
	})
}

// Cases that wide tiles do not support return ErrNoTiles and a reason, other errors do not.
func TestWideTileErrors(t *testing.T) {
	set := testdevices.CPU(t, 2)
	for name, c := range map[string]struct {
		change func(g *tileGrid[float64])
		says   string
		other  bool // not ErrNoTiles
	}{
		"a large box": {change: func(g *tileGrid[float64]) {
			*g = *newTileGrid[float64](t, set, gridCase{domain.Vec{300, 300, 1}, domain.Vec{1, 2, 1}, 2, "vvvv", domain.Float64, false}, 0)
		}, says: "must fit in the shared memory of 8 multiprocessors, with ghosts 2 wide"},
		"CPU devices": {change: func(g *tileGrid[float64]) {
			*g = *newTileGrid[float64](t, testdevices.Host(t, 2), g.gridCase, 0)
		}, says: "devices must be GPUs"},
		"not a star": {change: func(g *tileGrid[float64]) {
			g.stencil = test.Must(stencil.HeatOf(stencil.Kinds(2)[1], []float64{1, 1}, 1, 0.1))(t)
		}, says: "must be a star"},
		"integers":         {change: func(g *tileGrid[float64]) { g.real = "int32" }, says: "must be a star"},
		"no step":          {change: func(g *tileGrid[float64]) { g.rig.exchange = 0 }, says: "exchange interval: must be at least 1 step, got 0", other: true},
		"more steps":       {change: func(g *tileGrid[float64]) { g.rig.exchange = 3 }, says: "must be all of"},
		"no device":        {change: func(g *tileGrid[float64]) { g.ranks[1].Device = nil }, says: "device must not be nil", other: true},
		"two on a device":  {change: func(g *tileGrid[float64]) { g.ranks[1].Device = g.ranks[0].Device }, says: "got two on device", other: true},
		"no edges":         {change: func(g *tileGrid[float64]) { g.ranks[0].Stores = g.ranks[0].Stores[:4] }, says: "must be stored"},
		"a store twice":    {change: func(g *tileGrid[float64]) { g.ranks[0].Stores = append(g.ranks[0].Stores, g.ranks[0].Stores[0]) }, says: "and the only one"},
		"a part of a side": {change: func(g *tileGrid[float64]) { g.ranks[0].Stores[0].Send.Hi[1]--; g.ranks[0].Stores[0].Ghost.Hi[1]-- }, says: "must be all of"},
		"an odd side":      {change: func(g *tileGrid[float64]) { g.ranks[0].Stores[0].Odd = []domain.Vec{{1}} }, says: "must be a copy from a side"},
		"a store next to a fixed side": {change: func(g *tileGrid[float64]) {
			corner := g.ranks[1].Fields[0].Layout.Owned
			ghost := domain.GhostBox(corner, domain.Direction{1, 1, 0}, domain.UniformRadius(2, 1))
			g.ranks[1].Stores = append(g.ranks[1].Stores, kernels.GhostStore{Send: domain.SendBox(corner, domain.Direction{1, 1, 0}, domain.UniformRadius(2, 1)), Ghost: ghost, To: 1})
		}, says: "next to a side whose ghosts keep their values"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTileGrid[float64](t, set, gridCase{domain.Vec{16, 16, 1}, domain.Vec{1, 2, 1}, 2, "ppvv", domain.Float64, false}, 0)
			c.change(g)
			group, err := step.NewTileGroup(g.all[0].Compiler, g.stencil, g.real, sums.Reproducible, g.ranks, g.rig.exchange, kerneltest.Limit)
			if err == nil {
				group.Close()
				t.Fatal("got no error")
			}
			if errors.Is(err, step.ErrNoTiles) == c.other || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
