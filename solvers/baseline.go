package solvers

import "github.com/halox/halox/streams"

// baseline is the naive scheme: one host thread for all devices and one stream
// a device. All devices sweep, then all is sent, then all is received, and the
// host waits after each.
type baseline struct {
	*run
	streams []*streams.Stream
}

func newBaseline(r *run) (scheme, error) {
	b := &baseline{run: r}
	for _, p := range r.parts {
		s, err := r.newStream(p.device, streams.Normal, "all")
		if err != nil {
			return nil, err
		}
		p.norms = p.wholeNorms
		b.streams = append(b.streams, s)
	}
	return b, nil
}

func (b *baseline) workers() [][]int {
	all := make([]int, len(b.parts))
	for rank := range all {
		all[rank] = rank
	}
	return [][]int{all}
}

func (b *baseline) assistants()     {}
func (b *baseline) stop(int, int64) {}
func (b *baseline) queues(rank int) (steps, norms *streams.Stream) {
	return b.streams[rank], b.streams[rank]
}

func (b *baseline) maxSteps() int64 { return maxSteps }

func (b *baseline) steps(worker int, first, last int64, norms bool) error {
	return eachStep(first, last, norms, func(n int64, norms bool) error { return b.step(worker, n, norms) })
}

func (b *baseline) step(worker int, n int64, norms bool) error {
	to := int(n % 2)
	for rank, p := range b.parts {
		s := b.streams[rank]
		s.BeginStep(n)
		if err := b.completeWalls(p, s, n); err != nil {
			return err
		}
		if err := launch(s, p.sweeps(norms).whole[to]); err != nil {
			return err
		}
		if err := b.refreshWalls(p, s, n); err != nil {
			return err
		}
		if norms {
			if err := p.norms[to].Queue(s); err != nil {
				return err
			}
		}
	}
	if err := b.sync(worker); err != nil {
		return err
	}
	for i, m := range b.plan.Messages {
		if err := b.exchanges[to].Transfer(i).Send(b.streams[m.From]); err != nil {
			return err
		}
	}
	if err := b.sync(worker); err != nil {
		return err
	}
	for i, m := range b.plan.Messages {
		if err := b.exchanges[to].Transfer(i).Receive(b.group, b.streams[m.To]); err != nil {
			return err
		}
	}
	return b.sync(worker)
}

func (b *baseline) sync(int) error {
	for _, s := range b.streams {
		if err := s.Sync(b.patience()); err != nil {
			return err
		}
	}
	return nil
}
