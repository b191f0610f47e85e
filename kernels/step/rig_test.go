package step_test

import (
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// rig holds devices with fields, of which tests make tiles of either kind.
type rig struct {
	t        *testing.T
	stencil  stencil.Stencil
	real     domain.Element
	exchange int                 // steps between two
	all      []*kerneltest.Bench // by rank
	ranks    []step.TileRank
}

// add adds a rank on one of the first devices of a set, which reach each other.
func (r *rig) add(set *testdevices.Set, device, devices int, rank step.TileRank) {
	r.t.Helper()
	r.ranks = append(r.ranks, rank)
	r.all = append(r.all, kerneltest.NewBench(r.t, &testdevices.Set{Devices: set.Devices[device:], Compiler: set.Compiler}))
	for _, peer := range set.Devices[:devices] {
		if rank.Device != peer {
			test.Check(r.t, rank.Device.EnablePeer(peer))
		}
	}
}

// group divides all ranks into tiles.
func (r *rig) group(limit time.Duration) *step.TileGroup {
	r.t.Helper()
	group, err := step.NewTileGroup(r.all[0].Compiler, r.stencil, r.real, sums.Reproducible, r.ranks, r.exchange, limit)
	if r.exchange > 1 && errors.Is(err, step.ErrNoTiles) && testdevices.OnCPU(r.all[0].Device) {
		r.t.Skip("SKIPPED: does not fit in shared memory on the CPU: ", err)
	}
	test.Check(r.t, err)
	r.t.Cleanup(func() {
		test.Report(r.t, group.Close())
	})
	return group
}

// steps prepares the steps of all ranks, with memory for the norms of two fields.
func (r *rig) steps(group *step.TileGroup) (steps []*step.TileSteps, norms [][2]streams.Span) {
	r.t.Helper()
	for i, rank := range r.ranks {
		var both [2]streams.Span
		for f := range both {
			m := test.Must(rank.Device.Alloc(group.Tiles(i) * int64(unsafe.Sizeof(reduce.Norms{}))))(r.t)
			r.t.Cleanup(func() { m.Close() })
			both[f] = m.All()
		}
		norms, steps = append(norms, both), append(steps, test.Must(group.Steps(i, both))(r.t))
	}
	return steps, norms
}

// checkedSteps prepares steps with checks.
func (r *rig) checkedSteps() (steps []*step.TileSteps, norms [][2]streams.Span) {
	r.t.Helper()
	group := r.group(kerneltest.Limit)
	if ok := test.Must(group.PrepareChecks())(r.t); !ok {
		r.t.Fatal("PrepareChecks: got false")
	}
	return r.steps(group)
}

// total joins the norms of all ranks.
func total(all []reduce.Norms) (sum reduce.Norms) {
	for _, n := range all {
		sum.Add(n)
	}
	return sum
}

// same reports whether norms are equal when sums are rounded.
func same(a, b reduce.Norms) bool {
	return a.MaxChange == b.MaxChange && a.Max == b.Max && a.SumChange2.Value() == b.SumChange2.Value() && a.Sum2.Value() == b.Sum2.Value()
}

// check runs launches with checks and compares their norms with those of each step. After each launch it calls
// after with the number of steps run, which a launch that ended early does not change. It returns that number.
func (r *rig) check(runs []checkedRun, want []reduce.Norms, after func(what string, made int64)) (made int64) {
	r.t.Helper()
	steps, left := r.checkedSteps()
	for _, run := range runs {
		what := fmt.Sprintf("%+v after %d steps", run, made)
		for i, s := range steps {
			test.Check(r.t, s.QueueChecked(r.all[i].Stream, made+1, run.steps, run.checks))
			if s.Queue(r.all[i].Stream, made+1+run.steps, 1, false) == nil {
				r.t.Fatal("Queue before Checked: got no error")
			}
		}
		begun := run.ended
		if since := run.steps - 2 - run.checks.Until; begun == 0 && since >= 0 {
			begun = since/run.checks.Every + 1
		}
		sums := make([]reduce.Norms, begun)
		for i, b := range r.all {
			b.Do(b.Stream.Sync(kerneltest.Limit), steps[i].Err())
			norms, ended := steps[i].Checked()
			if ended != run.ended || int64(len(norms)) != begun {
				r.t.Fatalf("%s: rank %d ended at check %d: got %d norms, want %d", what, i, ended, len(norms), begun)
			}
			for n, one := range norms {
				sums[n].Add(one)
			}
		}
		for n, got := range sums {
			if at := made + run.checks.Until + int64(n)*run.checks.Every + 1; !same(got, want[at]) {
				r.t.Fatalf("%s: norms of check %d: got %+v, want %+v", what, n, got, want[at])
			}
		}
		if run.ended == 0 {
			made += run.steps
			var last reduce.Norms
			for i, b := range r.all {
				last.Add(total(kerneltest.Get[reduce.Norms](b, left[i][made%2])))
			}
			if !same(last, want[made]) {
				r.t.Fatalf("%s: final norms: got %+v, want %+v", what, last, want[made])
			}
		}
		after(what, made)
	}
	return made
}
