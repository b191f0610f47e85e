package step_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/streams"
)

// mostChecked is the largest number of steps in launches with checks.
const mostChecked = 48

// checkedRun is a launch with checks, and the launch after it.
type checkedRun struct {
	steps  int64
	checks step.Checks
	ended  int64 // the check that must end it, counted from 1
}

// Launches compute norms of intermediate steps. A launch ends, without changing the fields, on all devices, at any
// check at which either norm falls to the tolerance, including the last, and the steps can be run again. It also
// ends at non-finite norms.
func TestTilesCheck(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	eachGPU(t, 3, func(t *testing.T, set *testdevices.Set) {
		type box struct {
			size    domain.Vec
			devices int
		}
		for _, c := range testdevices.Some(2, []box{{domain.Vec{65, 130, 1}, 3}, {domain.Vec{5, 4, 1}, 1}, {domain.Vec{33, 47, 1}, 1}, {domain.Vec{6, 7, 8}, 1}, {domain.Vec{9, 20, 31}, 2}}) {
			if c.devices > len(set.Devices) {
				continue
			}
			t.Run(fmt.Sprintf("size=%v/devices=%d", c.size, c.devices), func(t *testing.T) {
				r := newTileRow(t, set, c.devices, c.size)
				_, want := r.oracle(mostChecked)
				none := step.Checks{Every: 1, Tolerance: -1, Finite: true}
				at := func(step int64, l2 bool) (tolerance float64) { // tolerance that ends a run at a step, if the change decreases
					tolerance = want[step].MaxChange
					if l2 {
						tolerance = math.Sqrt(want[step].SumChange2.Value())
					}
					return tolerance
				}
				r.check([]checkedRun{
					{9, none, 0},
					{7, step.Checks{Every: 1, Tolerance: at(12, false)}, 3},
					{3, none, 0},
					{1, step.Checks{Every: 2, Tolerance: math.Inf(1)}, 0}, // its last step does not end a launch
					{8, step.Checks{Every: 1, Tolerance: at(20, true), L2: true}, 7},
					{2, step.Checks{Every: 5, Tolerance: -1}, 0},
					{9, step.Checks{Until: 2, Every: 3, Tolerance: -1}, 0},
				}, want)
				r.check([]checkedRun{ // these run for longer than the limit of votes
					{30, step.Checks{Every: 1, Tolerance: at(5, false)}, 5},
					{30, step.Checks{Until: 1, Every: 2, Tolerance: -1, Finite: true}, 0},
					{16, step.Checks{Every: 1, Tolerance: at(36, true), L2: true}, 6},
				}, want)
				r.check([]checkedRun{{6, step.Checks{Until: 4, Every: 9, Tolerance: math.Inf(1)}, 1}, {6, step.Checks{Until: 1, Every: 3, Tolerance: -1}, 0}, {6, step.Checks{Until: 1, Every: 2, Tolerance: math.Inf(1)}, 1}}, want)
			})
		}
	})
}

// Non-finite values end a launch, if requested.
func TestTilesCheckForNaN(t *testing.T) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		for i, bad := range []float64{math.NaN(), math.Inf(-1), 1e200} {
			for j, l2 := range []bool{false, true} {
				if !testdevices.Turn(i+j, 2, 2) {
					continue
				}
				r := newTileRow(t, set, 1, domain.Vec{5, 4, 1}) // fewer points per tile than a warp has threads
				r.first[3+5*2] = bad
				r.fill(0)
				steps, _ := r.checkedSteps()
				for n, finite := range []bool{false, true} {
					test.Check(t, steps[0].QueueChecked(r.all[0].Stream, int64(1+4*n), 4, step.Checks{Every: 1, Tolerance: 1e-30, L2: l2, Finite: finite}))
					r.all[0].Do(r.all[0].Stream.Sync(kerneltest.Limit), steps[0].Err())
					want := int64(0)
					if finite && bad != 1e200 {
						want = 1
					}
					if _, ended := steps[0].Checked(); ended != want {
						t.Errorf("%g, L2 %t, finite %t: ended at check %d", bad, l2, finite, ended)
					}
					r.fill(0)
				}
			}
		}
	})
}

// lateRing returns eight GPUs whose 64 tiles are in a ring. One of them delays reading the votes of a step.
func lateRing(t *testing.T, at int, late time.Duration) (*tileGrid[float64], *step.TileGroup) {
	set, err := testdevices.CPU(t, 8).Disturbed(func(d *streams.Device) []string {
		if d.ID != 0 {
			return nil
		}
		return []string{fmt.Sprintf("LATE_AT=%d", at), "LATE_BLOCK=5", fmt.Sprintf("LATE_FOR=%d", late.Nanoseconds())}
	})
	test.Check(t, err)
	r := newTileRow(t, set, 8, domain.Vec{4, 2048, 1})
	group := r.group(kerneltest.Limit)
	if ok := test.Must(group.PrepareChecks())(t); !ok || group.Tiles(0) != 8 {
		t.Fatalf("got checks: %t; %d tiles", ok, group.Tiles(0))
	}
	return r, group
}

// A tile that reads votes late still finds them, though distant tiles have continued.
func TestTilesReadVotesLate(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	r, group := lateRing(t, 10, time.Second)
	steps, _ := r.steps(group)
	for i, s := range steps {
		test.Check(t, s.QueueChecked(r.all[i].Stream, 1, mostChecked, step.Checks{Every: 1, Tolerance: -1}))
	}
	for i, s := range steps {
		test.Report(t, errors.Join(r.all[i].Stream.Sync(kerneltest.Limit), s.Err()))
	}
}

// A device that waits too long for the votes of other GPUs does not report a wait for its own blocks.
func TestTilesTimeOutWaitingForVotes(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	set := test.Must(testdevices.CPU(t, 8).ByProcessorTime())(t)
	r := newTileRow(t, set, 8, domain.Vec{4, 2048, 1})
	group := r.group(time.Second)
	if ok := test.Must(group.PrepareChecks())(t); !ok {
		t.Fatal("PrepareChecks: got false")
	}
	steps, _ := r.steps(group)
	const absent = 4
	for i, s := range steps {
		if i != absent {
			test.Check(t, s.QueueChecked(r.all[i].Stream, 1, 48, step.Checks{Every: 1, Tolerance: -1}))
		}
	}
	for i, s := range steps {
		if i == absent {
			continue
		}
		test.Check(t, r.all[i].Stream.Sync(kerneltest.Limit))
		if err := s.Err(); err == nil || strings.Contains(err.Error(), "each other") || !strings.Contains(err.Error(), "timed out waiting for") {
			t.Errorf("device %d: got %v", i, err)
		}
	}
}

// A tile that reads votes late still finds them if others have continued to the launch after one that ended early.
func TestTilesReadVotesLateAtAnEnd(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	r, group := lateRing(t, 9, time.Second)
	_, want := r.oracle(9)
	r.fill(0)
	steps, _ := r.steps(group)
	var all sync.WaitGroup
	for i, s := range steps {
		all.Go(func() {
			for n, c := range []checkedRun{{40, step.Checks{Every: 1, Tolerance: want[9].MaxChange}, 9}, {10, step.Checks{Every: 1, Tolerance: -1}, 0}} {
				if err := s.QueueChecked(r.all[i].Stream, 1, c.steps, c.checks); err != nil {
					t.Errorf("device %d, launch %d: %v", i, n, err)
					return
				}
				if err := errors.Join(r.all[i].Stream.Sync(kerneltest.Limit), s.Err()); err != nil {
					t.Errorf("device %d, launch %d: %v", i, n, err)
					return
				}
				if _, ended := s.Checked(); ended != c.ended {
					t.Errorf("device %d, launch %d: ended at check %d, want %d", i, n, ended, c.ended)
				}
			}
		})
	}
	all.Wait()
}
