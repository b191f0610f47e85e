package scheme

import (
	"time"

	"github.com/halox/halox/streams"
)

// fences are the events by which one worker follows its devices: how far they
// are, so that the host is not more than two rounds ahead of them, and whether
// the norms it asked for have come.
type fences struct {
	worker int
	ranks  []int
	steps  []*streams.Stream   // that end steps
	totals []*streams.Stream   // on which norms are reduced
	round  [2][]*streams.Event // at the ends of the last two rounds
	norms  [2][]*streams.Event // of the last two rounds with norms
	rounds int
	taker  divider // that norms come from; nil where phases of steps have them
}

func (r *run) newFences(sch scheme, worker int, ranks []int) (*fences, error) {
	f := &fences{worker: worker, ranks: ranks}
	f.taker, _ = sch.(divider)
	for _, rank := range ranks {
		steps, norms := sch.queues(rank)
		f.steps, f.totals = append(f.steps, steps), append(f.totals, norms)
		for _, events := range []*[]*streams.Event{&f.round[0], &f.round[1], &f.norms[0], &f.norms[1]} {
			var e *streams.Event
			if err := r.newEvents(r.subdomains[rank].device, &e); err != nil {
				return nil, err
			}
			*events = append(*events, e)
		}
	}
	return f, nil
}

// pass records the end of a round and waits for the end of the one before.
func (f *fences) pass(r *run, done round) error {
	f.rounds++
	now, before := f.round[f.rounds%2], f.round[(f.rounds+1)%2]
	for i, s := range f.steps {
		if err := s.Record(now[i]); err != nil {
			return err
		}
		if done.check {
			if err := f.totals[i].Record(f.norms[done.number%2][i]); err != nil {
				return err
			}
		}
	}
	for _, e := range before {
		if err := e.Sync(r.patience()); err != nil {
			return err
		}
	}
	return nil
}

// drain waits until the devices have done the round whose end was recorded last. It
// never sleeps, as Sync does after a while: an interval ends when they are done, not when a
// thread wakes up. Devices that work on cores of the host would lack the core.
func (f *fences) drain(r *run) {
	until := time.Now().Add(r.patience())
	for i, e := range f.round[f.rounds%2] {
		for !f.steps[i].Device().HostCores && time.Now().Before(until) {
			if done, err := e.Done(); done || err != nil {
				break // an error comes again from what waits next
			}
		}
	}
}

// collectNorms waits for the norms of a look and hands them over, by rank.
func (f *fences) collectNorms(r *run, l look, to []taken) error {
	for i, rank := range f.ranks {
		if err := f.norms[l.number%2][i].Sync(r.patience()); err != nil {
			return err
		}
		if f.taker != nil {
			f.taker.take(f.worker, l, &to[rank])
			continue
		}
		for _, t := range r.subdomains[rank].totals[r.phase(l.step)] {
			t.addTo(&to[rank])
		}
	}
	return nil
}
