package scheme

import (
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// residentPoints is Resident for stages of point functions: a kernel a device makes all steps of a round.
type residentPoints struct {
	*run
	all     *sweep.ResidentSteps
	streams []*streams.Stream
}

func newResidentPoints(r *run) (scheme, error) {
	p := &residentPoints{run: r}
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	if p.all, err = sweep.NewResidentSteps(ranks, r.patience()); err != nil {
		return nil, err
	}
	r.resources.Add(p.all)
	for _, d := range r.subdomains {
		s, err := r.newStream(d.device, streams.Normal, "steps")
		if err != nil {
			return nil, err
		}
		p.streams = append(p.streams, s)
		err = r.takePointTotals(d, func(_, stage int) *sweep.Totals { return p.all.Rank(d.rank).Totals(stage) })
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *residentPoints) workers() [][]int { return alone(len(p.subdomains)) }
func (p *residentPoints) assistants()      {}
func (p *residentPoints) stop(int, int64)  {}

// maxQueued is how many steps a round may have: those of one launch do not fill a queue.
func (p *residentPoints) maxQueued() int64 { return 1 << 20 }

func (p *residentPoints) queues(rank int) (steps, norms *streams.Stream) {
	return p.streams[rank], p.streams[rank]
}

func (p *residentPoints) steps(worker int, first, last int64, norms bool) error {
	d, s := p.subdomains[worker], p.streams[worker]
	s.BeginStep(first)
	m := sweep.Moment{Step: p.done + first, Length: p.step.Length}
	if err := p.all.Rank(d.rank).Queue(s, m, last-first+1, norms); err != nil {
		return err
	}
	if norms {
		return p.queueTotals(d, s, last)
	}
	return nil
}

// sync waits for the stream, and looks whether the kernels gave up waiting.
func (p *residentPoints) sync(worker int) error {
	if err := p.streams[worker].Sync(p.patience()); err != nil {
		return err
	}
	return p.all.Rank(worker).Err()
}
