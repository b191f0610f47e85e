package step_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// A device whose neighbor runs no steps times out, within a launch and before one, and names the neighbor. All
// later launches fail too.
func TestTilesTimeOut(t *testing.T) {
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs two devices")
		}
		set = test.Must(set.ByProcessorTime())(t)
		for name, pair := range map[string]func(t *testing.T) *rig{
			"exchange=1": func(t *testing.T) *rig { return &newTileRow(t, set, 2, domain.Vec{64, 64, 1}).rig },
			"exchange=2": func(t *testing.T) *rig {
				return &newTileGrid[float64](t, set, gridCase{domain.Vec{24, 24, 1}, domain.Vec{1, 2, 1}, 2, "ppvv", domain.Float64, false}, 0).rig
			},
		} {
			for _, launches := range [][]int64{{1000}, {1, 1}} {
				t.Run(fmt.Sprint(name, "/launches=", launches), func(t *testing.T) {
					r := pair(t)
					steps, _ := r.steps(r.group(200 * time.Millisecond))
					next := int64(1)
					for _, n := range launches { // the first step needs no neighbor, if it is the only one
						test.Check(t, steps[0].Queue(r.all[0].Stream, next, n, false))
						next += n
					}
					test.Check(t, r.all[0].Stream.Sync(kerneltest.Limit))
					want := fmt.Sprintf("device %v timed out waiting for its neighbor on device %v", set.Devices[0], set.Devices[1])
					test.Says(t, steps[0].Err(), want)
					if steps[0].Queue(r.all[0].Stream, next, 1, false) == nil {
						t.Error("Queue after a timeout: got no error")
					}
					if err := steps[1].Err(); err != nil {
						t.Errorf("the other rank: got %v", err)
					}
				})
			}
		}
	})
}

// Fields that do not fit on the multiprocessors return ErrNoTiles, other errors do not.
func TestTileErrors(t *testing.T) {
	set := testdevices.CPU(t, 2)
	for name, c := range map[string]struct {
		change func(r *tileGrid[float64])
		other  bool // not ErrNoTiles
	}{
		"a box too large": {change: func(r *tileGrid[float64]) {
			*r = *newTileRow(t, set, 1, domain.Vec{1000, 1000, 1})
		}},
		"a box too large on one of two devices": {change: func(r *tileGrid[float64]) {
			large := newTileRow(t, set, 2, domain.Vec{1000, 1000, 1})
			r.ranks[0].Stores, r.ranks[1].Stores = nil, nil
			r.ranks[1].Fields = large.ranks[1].Fields
		}},
		"CPU devices": {change: func(r *tileGrid[float64]) {
			*r = *newTileRow(t, testdevices.Host(t, 2), 2, domain.Vec{16, 16, 1})
		}},
		"a stencil that is not a star": {change: func(r *tileGrid[float64]) {
			r.stencil = test.Must(stencil.HeatOf(stencil.Kinds(2)[1], []float64{1, 1}, 1, 0.1))(t)
		}},
		"no device": {other: true, change: func(r *tileGrid[float64]) { r.ranks[1].Device = nil }},
		"integers":  {change: func(r *tileGrid[float64]) { r.real = "int32" }},
		"fields of two layouts": {change: func(r *tileGrid[float64]) {
			r.ranks[1].Fields[1] = r.ranks[0].Fields[1]
		}},
		"rows that are not aligned": {change: func(r *tileGrid[float64]) {
			for f, a := range r.ranks[0].Fields {
				l := test.Must(domain.NewStridedLayout(a.Layout.Owned, a.Layout.Width, 8, 40, 19, 19*19))(t)
				r.ranks[0].Fields[f].Layout = l
			}
		}},
		"an odd side": {change: func(r *tileGrid[float64]) {
			r.ranks[0].Stores[0].Odd = []domain.Vec{{1}}
		}},
		"a store of half a side": {change: func(r *tileGrid[float64]) {
			s := &r.ranks[0].Stores[0]
			s.Send.Hi[1]--
			s.Ghost.Hi[1]--
		}},
		"a side stored twice": {change: func(r *tileGrid[float64]) {
			r.ranks[0].Stores = append(r.ranks[0].Stores, r.ranks[0].Stores[0])
		}},
		"a neighbor without stores": {change: func(r *tileGrid[float64]) { r.ranks[1].Stores = nil }},
		"two ranks on a device": {other: true, change: func(r *tileGrid[float64]) {
			r.ranks[1].Device = r.ranks[0].Device
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTileRow(t, set, 2, domain.Vec{16, 16, 1})
			c.change(r)
			group, err := step.NewTileGroup(r.all[0].Compiler, r.stencil, r.real, sums.Reproducible, r.ranks, 1, kerneltest.Limit)
			if err == nil {
				group.Close()
				t.Fatal("got no error")
			}
			if errors.Is(err, step.ErrNoTiles) == c.other {
				t.Error(err)
			}
		})
	}
	r := newTileRow(t, set, 2, domain.Vec{16, 16, 1})
	group := r.group(kerneltest.Limit)
	steps, _ := r.steps(group)
	for _, span := range [][2]int64{{0, 1}, {-1, 3}, {1, 0}, {1, step.MaxTileSteps + 1}} {
		if steps[0].Queue(r.all[0].Stream, span[0], span[1], false) == nil {
			t.Errorf("%d steps from %d: got no error", span[1], span[0])
		}
	}
	test.Check(t, errors.Join(group.Close(), group.Close()))
}

// tryTiles runs eight steps in launches of any length, from an odd step, from an even one, and across step 2^32,
// and compares them with plain loops.
func tryTiles(t *testing.T, set *testdevices.Set, c gridCase) {
	type series struct {
		first    int64
		launches []int64
	}
	for _, one := range testdevices.Some(3, []series{
		{0, []int64{1, 2, 1, 1, 3}}, {0, []int64{5, 2, 1}}, {5, []int64{3, 5}}, {1<<32 - 5, []int64{3, 5}}, {1<<32 - 4, []int64{2, 6}},
	}) {
		t.Run(fmt.Sprintf("%v/launches=%v/first=%d", c, one.launches, one.first), func(t *testing.T) {
			c.run(t, set, 0, one.first, one.launches, 0)
		})
	}
}

// Tiles are bitwise identical to plain loops, in boxes with one or many tiles of unequal sizes, on one and several
// devices, in launches of any number of steps.
func TestTiles(t *testing.T) {
	eachGPU(t, 3, func(t *testing.T, set *testdevices.Set) {
		onCPU := testdevices.OnCPU(set.Devices[0])
		for i, size := range []domain.Vec{{5, 7, 1}, {301, 97, 1}, {1030, 203, 1}, {6, 5, 7}, {33, 20, 2}, {33, 47, 29}, {70, 101, 64}, {100, 90, 131}, {40, 3000, 1}, {7, 1, 5}, {1, 6, 5}, {9, 8, 1}} {
			slow := size[2]
			if slow == 1 {
				slow = size[1]
			}
			for devices := 1; devices <= min(slow, len(set.Devices)); devices++ {
				for _, real := range []domain.Element{domain.Float64, domain.Float32} {
					if onCPU && (size.Product() > 1<<16 || devices == 2 || (devices > 1) != (real == domain.Float64)) {
						continue // a few cases, which compile tiles of all kinds
					}
					if onCPU && !testdevices.Turn(i+2*(devices/2), 4, 4) {
						continue // each size on one device, on three or on none
					}
					tryTiles(t, set, rowCase(size, devices, real))
				}
			}
		}
	})
}

// The same with a part of the tiles in registers, see TestTilings.
func TestTilesInRegisters(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		try := func(c gridCase) {
			c.inRegisters = true
			tryTiles(t, set, c)
		}
		if testdevices.OnCPU(set.Devices[0]) { // these have less shared memory
			for _, c := range testdevices.Some(1, []gridCase{
				rowCase(domain.Vec{65, 67, 26}, 2, domain.Float64), rowCase(domain.Vec{515, 301, 1}, 2, domain.Float32),
			}) {
				try(c)
			}
			return
		}
		for devices := 1; devices <= min(2, len(set.Devices)); devices++ {
			for _, size := range []domain.Vec{{127, 253, 123 * devices}, {1030, 4099 * devices, 1}} {
				try(rowCase(size, devices, domain.Float64))
			}
			for _, size := range []domain.Vec{{253, 255, 121 * devices}, {2050, 4101 * devices, 1}} {
				try(rowCase(size, devices, domain.Float32))
			}
		}
	})
}
