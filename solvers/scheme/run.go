package scheme

import (
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/streams"
)

// run is one run of a step: what a scheme needs. What a scheme makes it adds to the run's
// resources. Steps of a run count from 1.
type run struct {
	resources streams.Resources
	*Runner
	workers *streams.WorkerGroup
	credits []map[int]*streams.Signal // by stage and message, where one is needed, see credit
}

// phase returns the phase of a step.
func (r *run) phase(n int64) int { return int((r.done + n) % int64(r.period)) }

// time returns the time of the level that a step computes.
func (r *run) time(n int64) float64 { return float64(r.done+n) * r.step.Length }

// launch queues a launch, unless it is nil. It is given the time at which the step begins.
func (r *run) launch(s *streams.Stream, l Launch, n int64) error {
	if l == nil {
		return nil
	}
	return l(s, r.done+n, r.time(n-1))
}

// exchange returns the exchange after a stage of a step, nil if there is none.
func (r *run) exchange(stage int, n int64) *halo.Exchanger { return r.exchanges[r.phase(n)][stage] }

// messagesOf returns those of a stage's plan.
func (r *run) messagesOf(stage int) []halo.Message {
	if r.plans[stage] == nil {
		return nil
	}
	return r.plans[stage].Messages
}

// substep numbers the stages of all steps, from 1.
func (r *run) substep(n int64, stage int) int64 {
	return (n-1)*int64(len(r.step.Stages)) + int64(stage) + 1
}

// sends reports whether an exchange may follow a stage of a step.
func (r *run) sends(stage int, n int64) bool { return !r.step.grows(r.done+n, stage) }

// exchangesUpTo returns how many exchanges end groups in steps 1 to n.
func (r *run) exchangesUpTo(n int64) int64 {
	k := int64(r.step.group())
	return (r.done+n)/k - r.done/k
}

// exchangesTo numbers the stages after which an exchange may follow, from 1: it is that of such a stage.
func (r *run) exchangesTo(stage int, n int64) int64 {
	if r.step.group() == 1 {
		return r.substep(n, stage)
	}
	return r.exchangesUpTo(n)
}

// patience is how long a worker waits for its own device: less than others
// wait for the worker, so that the error that comes first names the device.
func (r *run) patience() time.Duration { return r.workers.Limit() / 2 }

// newStream makes a stream of the run, which traces call by that name.
func (r *run) newStream(d *streams.Device, priority streams.Priority, name string, args ...any) (*streams.Stream, error) {
	s, err := d.NewStream(priority)
	if err != nil {
		return nil, err
	}
	r.resources.Add(s)
	s.SetName(name, args...)
	return s, nil
}

// newEvents makes events of the run.
func (r *run) newEvents(d *streams.Device, events ...**streams.Event) error {
	for _, e := range events {
		made, err := d.NewEvent()
		if err != nil {
			return err
		}
		r.resources.Add(made)
		*e = made
	}
	return nil
}

// refresh queues what the physical faces do to the ghosts of what a stage has written, after
// the boundary region is swept and before messages leave: a message may carry ghosts that lie
// between its points.
func (r *run) refresh(d *subdomain, s *streams.Stream, stage int, n int64) error {
	return r.eachWritten(stage, n, func(g *boundary.Ghosts) error { return g.Refresh(d.rank, s, r.done+n, r.time(n)) })
}

// complete queues what is still to be done to the ghosts that a stage reads, after those of
// neighbours have come: in edges and corners.
func (r *run) complete(d *subdomain, s *streams.Stream, stage int, n int64) error {
	return r.eachReadAround(stage, n, func(g *boundary.Ghosts) error { return g.Complete(d.rank, s) })
}

// eachReadAround calls do for the ghosts of what a stage of a step reads around points.
func (r *run) eachReadAround(stage int, n int64, do func(g *boundary.Ghosts) error) error {
	for _, a := range r.step.Stages[stage].Reads {
		if g := r.ghosts[a.Variable]; g != nil && a.around() {
			if err := do(g[a.slot(r.done+n)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachWritten calls do for the ghosts of what a stage of a step writes.
func (r *run) eachWritten(stage int, n int64, do func(g *boundary.Ghosts) error) error {
	for _, a := range r.step.Stages[stage].Writes {
		if g := r.ghosts[a.Variable]; g != nil {
			if err := do(g[a.slot(r.done+n)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// queueTotals queues the norms of a step.
func (r *run) queueTotals(d *subdomain, s *streams.Stream, n int64) error {
	for _, t := range d.totals[r.phase(n)] {
		if err := t.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

// sweeps returns the launches of a stage in a step, with norms or without.
func (d *subdomain) sweeps(r *run, stage int, n int64, norms bool) *sweeps {
	s := &d.stages[r.phase(n)][stage]
	if norms {
		return &s.measured
	}
	return &s.plain
}

// measureAll has the norms of a subdomain taken from its fields, after a step: its sweeps do not
// take them on their way.
func (r *run) measureAll(d *subdomain) error {
	d.totals = nil
	for phase := range r.period {
		var all []total
		for v := range r.step.Measured {
			t, err := d.measureFields(r.Runner, v, int64(phase), &r.resources)
			if err != nil {
				return err
			}
			all = append(all, t)
		}
		d.totals = append(d.totals, all)
	}
	return nil
}

// setGhosts sets all ghosts that steps may read before they are written, once at the beginning
// of a run: those that never change, in all fields, and in fields of levels that are known those
// of neighbours and behind physical faces.
func (r *run) setGhosts() error {
	var at halo.Streams
	defer func() { _ = at.Close() }() // after an error of a device it is no news
	at, err := r.place.NewStreams()
	if err != nil {
		return err
	}
	done := map[*halo.Exchanger]bool{}
	for i := range r.step.Stages {
		for phase := range r.period {
			x := r.exchanges[phase][i]
			if x == nil || done[x] {
				continue
			}
			done[x] = true
			if err := r.exchangeNow(at, x, r.plans[i]); err != nil {
				return err
			}
		}
	}
	for _, x := range r.once {
		if err := r.exchangeNow(at, x, r.oncePlan); err != nil {
			return err
		}
	}
	for v, ghosts := range r.ghosts {
		for slot, g := range ghosts {
			level := r.levelIn(v, slot)
			for _, rank := range r.local {
				s := at[rank]
				err := g.SetFixed(rank, s)
				if err == nil && level > r.done-int64(r.depth(v)) {
					err = g.Move(rank, s, level, float64(level)*r.step.Length)
				}
				if err == nil {
					err = g.Mirror(rank, s)
				}
				if err == nil {
					err = g.Complete(rank, s)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return at.Sync(r.patience())
}

// levelIn returns the newest known level that lies in a field of the variable.
func (r *run) levelIn(v *Variable, slot int) int64 {
	level := r.done
	for v.slot(level) != slot {
		level--
	}
	return level
}

// depth returns how many of the newest levels of a variable stages read around a point.
func (r *run) depth(v *Variable) (levels int) {
	for _, st := range r.step.Stages {
		for _, a := range st.Reads {
			if a.Variable == v && a.around() {
				levels = max(levels, 1-a.Level)
			}
		}
	}
	return levels
}

// exchangeNow carries an exchange out, one message after the other. It waits for it: the next one
// may be of the same buffers.
func (r *run) exchangeNow(at halo.Streams, x *halo.Exchanger, plan *halo.Plan) error {
	for i, m := range plan.Messages {
		if at[m.From] != nil {
			if err := x.Transfer(i).Send(at[m.From]); err != nil {
				return err
			}
		}
		if at[m.To] != nil {
			if err := x.Transfer(i).Receive(r.workers, at[m.To]); err != nil {
				return err
			}
		}
	}
	return at.Sync(r.patience())
}

// Close frees what it holds. Closing twice is no error.
func (r *run) Close() error { return r.resources.Close() }
