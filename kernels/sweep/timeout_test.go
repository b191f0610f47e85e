package sweep

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stagePair is two devices that share a square, one half each, and a stage from one of two arrays to the other.
// Its stencil is not a star, for which the arrays would stay on the multiprocessors.
func stagePair(t *testing.T, set *testdevices.Set) (phases [][][]StageRank) {
	t.Helper()
	const size = 64
	s := test.Must(stencil.HeatOf(stencil.Kinds(2)[1], []float64{1, 1}, 1, 0.1))(t)
	if _, star := s.AsStar(); star {
		t.Fatal("the stencil must not be a star")
	}
	point, accesses, err := Linear(s, domain.Float64)
	test.Check(t, err)
	width := s.Radius()
	var sweepers [2]*Sweeper
	var boxes [2]domain.Box
	var arrays [2][2]kernels.Array // by rank
	for i, d := range set.Devices[:2] {
		boxes[i] = domain.Box{Lo: domain.Vec{0, size / 2 * i}, Hi: domain.Vec{size, size / 2 * (i + 1), 1}}
		sweepers[i] = test.Must(New(set.Compiler, d, point, accesses))(t)
		l := test.Must(domain.NewLayout(boxes[i], width, 8))(t)
		for n := range arrays[i] {
			m := test.Must(d.Alloc(l.Bytes()))(t)
			t.Cleanup(func() { m.Close() })
			arrays[i][n] = kernels.Array{Data: m.All(), Layout: l}
		}
		test.Check(t, d.EnablePeer(set.Devices[1-i]))
	}
	for phase := range 2 {
		var ranks []StageRank
		for i := range 2 {
			r := StageRank{Sweeper: sweepers[i], Arrays: Arrays{{arrays[i][phase]}, {arrays[i][1-phase]}}}
			r.Interior, r.Boundary = domain.Split(boxes[i], width)
			send := domain.SendBox(boxes[i], domain.Direction{0, 1 - 2*i}, width)
			r.Stores = []Store{{Access: 1, GhostStore: kernels.GhostStore{Send: send, Ghost: send, To: 1 - i}, Array: arrays[1-i][1-phase]}}
			ranks = append(ranks, r)
		}
		phases = append(phases, [][]StageRank{ranks})
	}
	return phases
}

// A device whose neighbor runs no stage times out and names that device; so does every later stage, and every
// later launch of resident steps.
func TestStagesTimeOut(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	const short = 200 * time.Millisecond
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 || set.Devices[0].GoKernels {
			t.Skip("SKIPPED: needs two GPUs, or emulated ones")
		}
		set = test.Must(set.ByProcessorTime())(t)
		stream := test.Must(set.Devices[0].NewStream(streams.Normal))(t)
		check := func(t *testing.T, err, other, queued error) {
			t.Helper()
			want := fmt.Sprintf("device %v timed out waiting for its neighbor on device %v", set.Devices[0], set.Devices[1])
			test.Says(t, err, want)
			if queued == nil {
				t.Error("Queue after a timeout: got no error")
			}
			if other != nil {
				t.Errorf("the other rank: got %v", other)
			}
		}
		t.Run("fused", func(t *testing.T) {
			f := test.Must(NewFusedStages(stagePair(t, set), short))(t)
			queue := func(step int64) error {
				return f.Stage(int(step%2), 0, 0).Queue(stream, Moment{Step: step}, nil, false)
			}
			// The first needs no neighbor, if it is the only one. Work queued behind the launch that times out does
			// not wait again.
			test.Check(t, errors.Join(queue(1), stream.Sync(checkLimit)))
			step, used := int64(2), testdevices.ProcessorTime(t)
			for ; step < 400; step++ {
				if err := queue(step); err != nil {
					break // the timeout is known already
				}
			}
			limit := checkLimit // on GPUs; 398 limits exceed this one
			if set.Devices[0].HostMemory {
				limit = time.Hour // other work may delay emulated launches
			}
			test.Check(t, stream.Sync(limit))
			if used = testdevices.ProcessorTime(t) - used; used > 300*short {
				t.Errorf("%d launches after a timeout took %v of processor time", step-2, used)
			}
			check(t, f.Stage(0, 0, 0).Err(), f.Stage(0, 0, 1).Err(), queue(step))
			test.Report(t, f.Close())
		})
		for _, launches := range [][]int64{{1000}, {1, 1}} {
			t.Run(fmt.Sprintf("resident/launches=%d", launches), func(t *testing.T) {
				r := test.Must(NewResidentSteps(stagePair(t, set), 1, short, true, nil))(t)
				next := int64(1)
				queue := func(steps int64) error {
					err := r.Rank(0).Queue(stream, Moment{Step: next}, steps, false)
					next += steps
					return err
				}
				for _, steps := range launches {
					test.Check(t, queue(steps))
				}
				test.Check(t, stream.Sync(checkLimit))
				check(t, r.Rank(0).Err(), r.Rank(1).Err(), queue(1))
				test.Report(t, r.Close())
			})
		}
	})
}
