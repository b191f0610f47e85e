package solvers

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// A run by scheme resident, of which a launch takes the norms of many steps, ends at the step at which another scheme does, with its history,
// by both norms, on one device and several; and the next run goes on from there. Unless tests are long, GPUs that the CPU plays take a third of
// all cases, of groups of steps a sixth: each interval on each grid, by one of the norms.
func TestResidentEndsAtAnyStep(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		onCPU := testdevices.OnCPU(set.Devices[0])
		for i, c := range []struct {
			size  []int
			walls string
			parts domain.Vec
			group int
		}{
			{[]int{33, 47}, "dndt", domain.Vec{1, 1, 1}, 1}, {[]int{64, 48}, "pppp", domain.Vec{1, 3, 1}, 1}, {[]int{12, 10, 16}, "dndnpp", domain.Vec{1, 1, 2}, 1},
			{[]int{33, 47}, "dndd", domain.Vec{1, 3, 1}, 3}, {[]int{12, 10, 16}, "dndnpp", domain.Vec{1, 1, 2}, 2}, {[]int{7, 9, 8}, "pppppp", domain.Vec{1, 1, 1}, 4},
		} {
			if int(c.parts.Product()) > len(set.Devices) {
				continue
			}
			p := problem(t, c.size, kernels.Float64, c.walls)
			if changes(p) {
				p = problem(t, c.size, kernels.Float64, "dndddd"[:2*len(c.size)])
			}
			other := how{scheme: TwoStream, order: LeftRight, path: p2p.Staged, parts: c.parts}
			tiles := how{scheme: Resident, path: p2p.Direct, parts: c.parts}
			_, long := solve(t, set, p, other, Options{Steps: 40, History: true})
			for j, every := range []int64{1, 2, 7} {
				for k, norm := range []scheme.Norm{MaxNorm, L2Norm} {
					if onCPU && !testdevices.Turn(i+j+k, 3, 3*min(c.group, 2)) {
						continue
					}
					t.Run(fmt.Sprintf("size=%v/group=%d/every=%d/norm=%s", c.size, c.group, every, norm), func(t *testing.T) {
						alone, checked := prepare(t, set, p, other), prepare(t, set, inGroupsOf(p, c.group), tiles)
						for _, at := range []int{13, 27} { // beyond the first run, in the second
							tolerance := long.History[at-1].MaxChange
							if norm == L2Norm {
								tolerance = long.History[at-1].L2Change
							}
							for _, o := range []Options{{Steps: 100, Tolerance: tolerance}, {Steps: 3}} {
								o.Norm, o.CheckEvery, o.History = norm, every, true
								want, err1 := alone.Run(t.Context(), other.options(o))
								got, err2 := checked.Run(t.Context(), tiles.options(o))
								if err := errors.Join(err1, err2); err != nil {
									t.Fatal(err)
								}
								if got.Steps != want.Steps || got.Stopped != want.Stopped || !slices.Equal(got.History, want.History) {
									t.Errorf("%s after %d steps with %d checks, not %s after %d with %d", got.Stopped, got.Steps, len(got.History), want.Stopped, want.Steps, len(want.History))
								}
								compare(t, p.Grid, read(t, checked), read(t, alone))
							}
						}
					})
				}
			}
		}
	})
}

// Intervals end where they are asked for, and have all their steps, beside norms of every step.
func TestResidentChecksInIntervals(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{33, 47}, kernels.Float64, "dndd")
		s := prepare(t, set, p, how{scheme: Resident, path: p2p.Direct, parts: domain.Vec{1, 1, 1}})
		var intervals []int64
		o := Options{Scheme: Resident, Steps: 200, CheckEvery: 3, History: true, Limit: testLimit, Interval: func(steps int64, _ time.Duration) int64 {
			intervals = append(intervals, steps)
			return []int64{10, 20, 31, 0}[min(3, len(intervals)-1)]
		}}
		res, err := s.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if want := []int64{0, 10, 20, 31}; !slices.Equal(intervals, want) || res.Steps != 62 || len(res.History) != 62/3+1 {
			t.Errorf("intervals of %v steps, %d in all, %d checks", intervals, res.Steps, len(res.History))
		}
	})
}
