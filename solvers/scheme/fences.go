package scheme

import (
	"time"

	"github.com/halox/halox/streams"
)

// fences are the events by which one worker follows its devices: how far they
// are, so that the host is not more than two rounds ahead of them, and whether
// the norms it asked for have come.
type fences struct {
	ranks  []int
	steps  []*streams.Stream   // that end steps
	totals []*streams.Stream   // on which norms are reduced
	round  [2][]*streams.Event // at the ends of the last two rounds
	norms  [2][]*streams.Event // of an even and of an odd step
	rounds int
}

func (r *run) newFences(sch scheme, ranks []int) (*fences, error) {
	f := &fences{ranks: ranks}
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
			if err := f.totals[i].Record(f.norms[done.last%2][i]); err != nil {
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

// collectNorms waits for the norms of a step and hands them to the controller.
func (f *fences) collectNorms(r *run, c *controller, step int64) error {
	for i, rank := range f.ranks {
		if err := f.norms[step%2][i].Sync(r.patience()); err != nil {
			return err
		}
		for _, t := range r.subdomains[rank].totals[r.phase(step)] {
			t.addTo(&c.collected[rank])
		}
	}
	return nil
}
