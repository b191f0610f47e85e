package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// If processes share the grid, a stage of scheme fused is two consecutive kernels per device. The first
// sweeps the part of the boundary region that is sent to other processes, which assistants pack and send
// while the second sweeps the rest. Both store into the ghosts of neighbors in this process, and wait for
// their stores. The first is queued once earlier messages of other processes have arrived: no kernel waits
// for a message.

// remoteFaces is the exchange of a subdomain with its neighbors in other processes.
type remoteFaces struct {
	*assistants
	near   []*remoteFaces  // those of its neighbors in this process
	queued streams.Counter // queued stages
}

// remoteNeighbours returns the number of neighbors in other processes of all subdomains of this one.
func (r *Runner) remoteNeighbours() (n int) {
	for _, rank := range r.local {
		n += len(r.remoteOf(r.subdomains[rank]))
	}
	return n
}

// remoteOf returns the neighbors of a subdomain that are in other processes.
func (r *Runner) remoteOf(d *subdomain) []int {
	return slices.DeleteFunc(d.neighbors(r), r.place.IsLocal)
}

// newRemoteFaces makes the remoteFaces of all subdomains of this process, by worker.
func (r *run) newRemoteFaces() (all []*remoteFaces, err error) {
	for _, rank := range r.local {
		d := r.subdomains[rank]
		one := &remoteFaces{
			queued: streams.Counter{Name: fmt.Sprintf("subdomain %d on device %v to queue a stage", rank, d.device)},
		}
		if one.assistants, err = r.newAssistants(d, r.remoteOf(d), false); err != nil {
			return nil, err
		}
		for _, h := range one.all {
			for stage := range h.behindSweep {
				h.behindSweep[stage] = true // the second kernel of the previous stage may read ghosts too
			}
		}
		all = append(all, one)
	}
	for _, one := range all {
		for _, neighbour := range one.neighbors(r.Runner) {
			if neighbour != one.rank && r.place.IsLocal(neighbour) {
				one.near = append(one.near, all[r.workerOf(neighbour)])
			}
		}
	}
	return all, nil
}

// begin waits until a stage can be queued, and makes the stream wait for messages from other processes. The
// neighbors in this process have queued the previous stage: a kernel that waits for them does not wait for
// the host.
func (r *remoteFaces) begin(s *streams.Stream, stage int, n int64) error {
	for _, other := range r.near {
		if err := r.threads.Await(&other.queued, r.substep(n, stage)-1); err != nil {
			return err
		}
	}
	came, err := r.await(s, stage, n)
	if err != nil || !came {
		return err
	}
	return r.eachReadAround(stage, n, func(g *boundary.Ghosts) error { return g.CompleteRemote(r.rank, s) })
}

// remoteFirst divides each stage in two: the part that is sent to other processes, and the rest.
func (r *run) remoteFirst(all [][][]sweep.StageRank) (divided [][][]sweep.StageRank) {
	for phase, stages := range all {
		var both [][]sweep.StageRank
		for stage, ranks := range stages {
			var first, rest []sweep.StageRank
			for worker, whole := range ranks {
				one, other := divide(whole, r.sentAway(r.local[worker], stage, int64(phase)))
				first, rest = append(first, one), append(rest, other)
			}
			both = append(both, first, rest)
		}
		divided = append(divided, both)
	}
	return divided
}

// sentAway returns the boxes that a subdomain sends to other processes after a stage of step n, or of its
// phase.
func (r *Runner) sentAway(rank, stage int, n int64) (boxes []domain.Box) {
	if r.plans[stage] == nil || r.step.grows(n, stage) {
		return nil
	}
	for _, i := range r.subdomains[rank].out[stage] {
		if m := r.plans[stage].Messages[i]; !r.place.IsLocal(m.To) {
			for _, part := range m.Parts {
				boxes = append(boxes, part.Send)
			}
		}
	}
	return boxes
}

// divide divides the work of a rank in a stage: the boxes of its boundary region with points that are sent,
// and the rest.
func divide(whole sweep.StageRank, sent []domain.Box) (first, rest sweep.StageRank) {
	first, rest = whole, whole
	first.Continued = true
	first.Boundary, first.Interior, first.Stores = nil, domain.Box{}, nil
	rest.Boundary, rest.Stores = nil, nil
	for _, box := range whole.Boundary {
		part := &rest
		if slices.ContainsFunc(sent, func(s domain.Box) bool { return !s.Intersect(box).Empty() }) {
			part = &first
		}
		part.Boundary = append(part.Boundary, box)
		for _, s := range whole.Stores {
			if s, ok := s.Intersect(box); ok {
				part.Stores = append(part.Stores, s)
			}
		}
	}
	if len(first.Boundary) == 0 {
		rest = whole
	}
	return first, rest
}

// Fused is the scheme in which one kernel per device runs a stage: it sweeps, stores boundary points into the
// neighbors' ghosts, and waits for their stores. If processes share the grid it is two kernels, and
// assistants exchange messages with other processes.
const Fused Scheme = "fused"

func fusedScheme() *definition {
	return &definition{
		name: Fused,
		needs: Needs{
			Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true, Groups: true,
			Processes: true,
		},
		assistants: (*Runner).remoteNeighbours, unfit: unforwarded, make: newFused, onGPUs: true,
	}
}

// fused drives one subdomain.
type fused struct {
	*oneKernel
	worker   int
	all      *sweep.FusedStages
	launches int          // per stage
	give     []sweep.Give // by stage
	remote   *remoteFaces // nil for a single process
}

func newFused(r *run, _ Options) ([]worker, error) {
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	launches, remote := 1, make([]*remoteFaces, len(r.local))
	if !r.place.Processes.IsAlone() {
		launches, ranks = 2, r.remoteFirst(ranks)
		if remote, err = r.newRemoteFaces(); err != nil {
			return nil, err
		}
	}
	stages, err := sweep.NewFusedStages(ranks, r.patience())
	if err != nil {
		return nil, unsuited(Fused, err)
	}
	r.resources.Add(stages)
	return r.onePerSubdomain(func(d *subdomain) (_ worker, err error) {
		number := r.workerOf(d.rank)
		f := &fused{worker: number, all: stages, launches: launches, remote: remote[number]}
		for i := range r.step.Stages {
			f.give = append(f.give, r.step.Stages[i].give())
		}
		f.oneKernel, err = r.newOneKernel(d, func(phase, stage int) (all []*sweep.Totals) {
			if r.step.grows(int64(phase), stage) {
				return nil // ghosts are swept too
			}
			for launch := range launches {
				all = append(all, f.at(phase, stage, launch).Totals())
			}
			return all
		})
		return f, err
	})
}

// at returns a launch of a stage.
func (f *fused) at(phase, stage, launch int) *sweep.FusedStage {
	return f.all.Stage(phase, stage*f.launches+launch, f.worker)
}

func (f *fused) steps(first, last int64, norms bool) error {
	for n := first; n <= last; n++ {
		f.stream.BeginStep(n)
		for stage := range f.step.Stages {
			if err := f.stage(stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	if norms {
		return f.total(last)
	}
	return nil
}

// stage queues a stage of a step.
func (f *fused) stage(stage int, n int64, measured bool) error {
	if f.remote != nil {
		if err := f.remote.begin(f.stream, stage, n); err != nil {
			return err
		}
	}
	if err := f.move(stage, n); err != nil {
		return err
	}
	measured = measured && !f.step.grows(f.done+n, stage)
	for launch := range f.launches {
		if launch > 0 {
			if err := f.remote.announce(f.stream, stage, n); err != nil {
				return err
			}
		}
		if err := f.at(f.phase(n), stage, launch).Queue(f.stream, f.moment(n), f.give[stage], measured); err != nil {
			return err
		}
	}
	if f.remote != nil {
		f.remote.queued.Add()
	}
	return nil
}

// move queues the values of profiles, which the stage of a step reflects about and the next one reads.
func (f *fused) move(stage int, n int64) error {
	return f.eachWritten(stage, n,
		func(g *boundary.Ghosts) error { return g.Move(f.rank, f.stream, f.done+n, f.timeWritten(stage, n)) })
}

func (f *fused) start() {
	if f.remote != nil {
		f.remote.start()
	}
}

func (f *fused) stop(n int64) {
	if f.remote != nil {
		f.remote.stop(n)
	}
}

// sync waits for the streams, and checks whether the kernels reached their limit of waiting.
func (f *fused) sync() error {
	if f.remote != nil {
		if err := f.remote.sync(); err != nil {
			return err
		}
	}
	if err := f.syncAll(f.stream, f.norms); err != nil {
		return err
	}
	return f.at(0, 0, 0).Err()
}
