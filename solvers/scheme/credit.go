package scheme

import "github.com/halox/halox/streams"

// A message overwrites ghosts. Whoever sends it must know that the receiver has read what they held,
// which its sweep of the boundary region does at the latest in the stage before, and that the message
// which brought it has been put in place. Where the receiver sends a message in return in the stage
// before, and no message of that stage brings the same ghosts, the sender, which waits for that before it
// sweeps, knows. For other messages the receiver gives credit: it records a signal after its own sweep in
// the same stage, and the sender waits for it.

// stageBefore returns the stage before one, and in which step, relative to its own.
func (x *Runner) stageBefore(stage int) (before int, step int64) {
	if stage == 0 {
		return len(x.step.Stages) - 1, -1
	}
	return stage - 1, 0
}

// needsCredit reports whether no message in return says that the ghosts which a message brings
// are free. After a group of steps none does: the last came before the group.
func (x *Runner) needsCredit(stage, message int) bool {
	if x.step.group() > 1 {
		return true // nothing was sent in the steps before
	}
	before, step := x.stageBefore(stage)
	if x.plans[before] == nil || x.sendsAgain(stage, before, step) {
		return true
	}
	m := x.plans[stage].Messages[message]
	for _, back := range x.plans[before].Messages {
		if back.From == m.To && back.To == m.From {
			return false
		}
	}
	return true
}

// sendsAgain reports whether a stage sends a field that the stage before it has sent.
func (x *Runner) sendsAgain(stage, before int, step int64) bool {
	for _, now := range x.step.sent(stage) {
		for _, last := range x.step.sent(before) {
			if now.Variable == last.Variable && now.slot(1) == last.slot(1+step) {
				return true
			}
		}
	}
	return false
}

// remoteWithoutCredit reports whether a message that would need credit comes from another process. That sends when it likes:
// the message waits in a buffer of its own. What puts it in place is to wait for the receiver's sweep.
func (x *Runner) remoteWithoutCredit(stage, message int) bool {
	return !x.place.IsLocal(x.plans[stage].Messages[message].From) && x.needsCredit(stage, message)
}

// makeCredits makes the signals of messages that need credit, within the process.
func (r *run) makeCredits() error {
	r.credits = make([]map[int]*streams.Signal, len(r.step.Stages))
	for stage := range r.step.Stages {
		r.credits[stage] = map[int]*streams.Signal{}
		for i, m := range r.messagesOf(stage) {
			if !r.place.IsLocal(m.From) || !r.place.IsLocal(m.To) || !r.needsCredit(stage, i) {
				continue
			}
			d := r.place.Devices[m.To]
			s, err := d.NewSignal("subdomain %d on device %v to read its ghosts", m.To, d)
			if err != nil {
				return err
			}
			r.resources.Add(s)
			r.credits[stage][i] = s
		}
	}
	return nil
}

// giveCredit says on the stream of a subdomain that has swept the boundary region of a stage that the
// ghosts which the stage's messages bring are free.
func (r *run) giveCredit(d *subdomain, s *streams.Stream, stage int, n int64) error {
	if !r.sends(stage, n) {
		return nil
	}
	for _, i := range d.in[stage] {
		if c := r.credits[stage][i]; c != nil {
			if err := c.Record(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeCredit lets the stream of a sender wait until the ghosts that a message brings are free. There are no credits of a scheme whose
// messages all go to other processes.
func (r *run) takeCredit(s *streams.Stream, stage, message int, n int64) error {
	if r.credits == nil {
		return nil
	}
	if c := r.credits[stage][message]; c != nil {
		return c.Wait(r.workers, s, r.exchangesUpTo(n))
	}
	return nil
}

// covers reports whether a stage that follows must wait until the messages of this one have left,
// before it overwrites the points that they carry. With a single stage, which writes the fields of
// its variables in turn, it need not where the neighbour sends as well: its message of the step
// between says that it has got this one.
func (x *Runner) covers(out, in int) bool {
	return out > 0 && (len(x.step.Stages) > 1 || in == 0 || x.step.group() > 1)
}
