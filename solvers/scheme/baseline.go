package scheme

import (
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Baseline is the naive scheme: one host thread for all devices and one stream per device. All devices sweep,
// then all messages are sent, then all are received, and the host waits after each phase.
const Baseline Scheme = "baseline"

func baselineScheme() *definition {
	return &definition{
		name:  Baseline,
		needs: Needs{Paths: []p2p.Path{p2p.Staged}, Path: p2p.Staged, Groups: true, Processes: true},
		make:  newBaseline,
	}
}

// baseline is the only worker.
type baseline struct {
	*run
	streams halo.Streams // by rank
}

func newBaseline(r *run, _ Options) ([]worker, error) {
	b := &baseline{run: r, streams: make(halo.Streams, len(r.subdomains))}
	for _, rank := range r.local {
		d := r.subdomains[rank]
		s, err := r.newStream(d.device, streams.Normal, "all")
		if err != nil {
			return nil, err
		}
		d.totals = d.whole
		b.streams[rank] = s
	}
	return []worker{b}, nil
}

func (b *baseline) queues() (all []queue) {
	for _, rank := range b.local {
		all = append(all, queue{rank, b.streams[rank], b.streams[rank]})
	}
	return all
}

func (b *baseline) steps(first, last int64, norms bool) error {
	for n := first; n <= last; n++ {
		for stage := range b.step.Stages {
			if err := b.sweep(stage, n, norms && n == last); err != nil {
				return err
			}
			if err := b.send(stage, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep runs a stage on all subdomains.
func (b *baseline) sweep(stage int, n int64, norms bool) error {
	for _, rank := range b.local {
		d, s := b.subdomains[rank], b.streams[rank]
		s.BeginStep(n)
		if err := b.complete(d, s, stage, n); err != nil {
			return err
		}
		if err := b.launch(s, d.sweeps(b.run, stage, n, norms).whole, n); err != nil {
			return err
		}
		if err := b.refresh(d, s, stage, n); err != nil {
			return err
		}
		if norms && stage == len(b.step.Stages)-1 {
			if err := b.queueTotals(d, s, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// send exchanges the fields that a stage wrote.
func (b *baseline) send(stage int, n int64) error {
	if !b.sends(stage, n) {
		return nil
	}
	if err := b.sync(); err != nil {
		return err
	}
	for i, m := range b.messagesOf(stage) {
		if s := b.streams[m.From]; s != nil {
			if err := b.exchange(stage, n).Transfer(i).Send(s); err != nil {
				return err
			}
		}
	}
	if err := b.sync(); err != nil {
		return err
	}
	for i, m := range b.messagesOf(stage) {
		if s := b.streams[m.To]; s != nil {
			if err := b.exchange(stage, n).Transfer(i).Receive(b.threads, s); err != nil {
				return err
			}
		}
	}
	return b.sync()
}

func (b *baseline) sync() error { return b.streams.Sync(b.patience()) }
