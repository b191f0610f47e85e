package scheme

import (
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Baseline is the naive scheme: one host thread for all devices and one stream
// a device. All devices sweep, then all is sent, then all is received, and the
// host waits after each.
const Baseline Scheme = "baseline"

func baselineScheme() *definition {
	return &definition{name: Baseline, needs: Needs{Paths: []p2p.Path{p2p.Staged}, Path: p2p.Staged, Groups: true, Processes: true}, assistants: none, make: newBaseline}
}

type baseline struct {
	*run
	streams halo.Streams // by rank
}

func newBaseline(r *run, _ Options) (scheme, error) {
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
	return b, nil
}

func (b *baseline) workers() [][]int { return together(b.local) }
func (b *baseline) assistants()      {}
func (b *baseline) stop(int, int64)  {}
func (b *baseline) maxQueued() int64 { return maxSteps }
func (b *baseline) queues(rank int) (steps, norms *streams.Stream) {
	return b.streams[rank], b.streams[rank]
}

func (b *baseline) steps(worker int, first, last int64, norms bool) error {
	for n := first; n <= last; n++ {
		for stage := range b.step.Stages {
			if err := b.sweep(stage, n, norms && n == last); err != nil {
				return err
			}
			if err := b.send(worker, stage, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep makes a stage of all subdomains.
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

// send exchanges what a stage wrote.
func (b *baseline) send(worker, stage int, n int64) error {
	if !b.sends(stage, n) {
		return nil
	}
	if err := b.sync(worker); err != nil {
		return err
	}
	for i, m := range b.messagesOf(stage) {
		if b.streams[m.From] == nil {
			continue
		}
		if err := b.exchange(stage, n).Transfer(i).Send(b.streams[m.From]); err != nil {
			return err
		}
	}
	if err := b.sync(worker); err != nil {
		return err
	}
	for i, m := range b.messagesOf(stage) {
		if b.streams[m.To] == nil {
			continue
		}
		if err := b.exchange(stage, n).Transfer(i).Receive(b.run.workers, b.streams[m.To]); err != nil {
			return err
		}
	}
	return b.sync(worker)
}

func (b *baseline) sync(int) error { return b.streams.Sync(b.patience()) }
