package step_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// A device whose neighbour makes no step gives up at its limit and says for which one it waited, in the middle of a
// launch and before one; so does every later launch.
func TestTilesThatWaitTooLong(t *testing.T) {
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs two devices")
		}
		set = test.Must(set.ByProcessorTime())(t)
		for name, pair := range map[string]func(t *testing.T) *rig{
			"exchange=1": func(t *testing.T) *rig { return &newTileRow(t, set, 2, domain.Vec{64, 64, 1}).rig },
			"exchange=2": func(t *testing.T) *rig {
				return &newTileGrid[float64](t, set, gridCase{domain.Vec{24, 24, 1}, domain.Vec{1, 2, 1}, 2, "ppvv", kernels.Float64, false}, 0).rig
			},
		} {
			for _, launches := range [][]int64{{1000}, {1, 1}} {
				t.Run(fmt.Sprint(name, "/launches=", launches), func(t *testing.T) {
					r := pair(t)
					steps, _ := r.steps(r.group(200 * time.Millisecond))
					next := int64(1)
					for _, n := range launches { // the first step needs no other, if it is alone
						test.Check(t, steps[0].Queue(r.all[0].Stream, next, n, false))
						next += n
					}
					test.Check(t, r.all[0].Stream.Sync(kerneltest.Limit))
					want := fmt.Sprintf("device %v timed out waiting for its neighbour on device %v", set.Devices[0], set.Devices[1])
					test.Says(t, steps[0].Err(), want)
					if steps[0].Queue(r.all[0].Stream, next, 1, false) == nil {
						t.Error("it steps on")
					}
					if err := steps[1].Err(); err != nil {
						t.Errorf("the other rank: %v", err)
					}
				})
			}
		}
	})
}

// What does not stay on the multiprocessors is told apart from what is wrong.
func TestTileRefusals(t *testing.T) {
	set := testdevices.CPU(t, 2)
	for name, c := range map[string]struct {
		change func(r *tileGrid[float64])
		other  bool // than ErrNoTiles
	}{
		"a box too large": {change: func(r *tileGrid[float64]) {
			*r = *newTileRow(t, set, 1, domain.Vec{1000, 1000, 1})
		}},
		"a box too large on one of two devices": {change: func(r *tileGrid[float64]) {
			large := newTileRow(t, set, 2, domain.Vec{1000, 1000, 1})
			r.ranks[0].Stores, r.ranks[1].Stores = nil, nil
			r.ranks[1].Fields = large.ranks[1].Fields
		}},
		"host devices": {change: func(r *tileGrid[float64]) {
			*r = *newTileRow(t, testdevices.Host(t, 2), 2, domain.Vec{16, 16, 1})
		}},
		"a stencil that is no star": {change: func(r *tileGrid[float64]) {
			r.stencil = test.Must(stencil.HeatOf(stencil.Kinds(2)[1], []float64{1, 1}, 1, 0.1))(t)
		}},
		"no device":     {other: true, change: func(r *tileGrid[float64]) { r.ranks[1].Device = nil }},
		"whole numbers": {change: func(r *tileGrid[float64]) { r.real = "int32" }},
		"fields of two layouts": {change: func(r *tileGrid[float64]) {
			r.ranks[1].Fields[1] = r.ranks[0].Fields[1]
		}},
		"rows that are not aligned": {change: func(r *tileGrid[float64]) {
			for f, a := range r.ranks[0].Fields {
				l := test.Must(domain.NewStridedLayout(a.Layout.Owned, a.Layout.Width, 8, 40, 19, 19*19))(t)
				r.ranks[0].Fields[f].Layout = l
			}
		}},
		"a wall that fields are odd about": {change: func(r *tileGrid[float64]) {
			r.ranks[0].Stores[0].Odd = []domain.Vec{{1}}
		}},
		"a store of half a side": {change: func(r *tileGrid[float64]) {
			s := &r.ranks[0].Stores[0]
			s.Send.Hi[1]--
			s.Ghost.Hi[1]--
		}},
		"a side that is stored twice": {change: func(r *tileGrid[float64]) {
			r.ranks[0].Stores = append(r.ranks[0].Stores, r.ranks[0].Stores[0])
		}},
		"neighbours of which one stores nothing": {change: func(r *tileGrid[float64]) { r.ranks[1].Stores = nil }},
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
				t.Fatal("they were accepted")
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
			t.Errorf("%d steps from %d on were queued", span[1], span[0])
		}
	}
	test.Check(t, errors.Join(group.Close(), group.Close()))
}
