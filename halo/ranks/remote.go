package ranks

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/halox/halox/p2p/mpi"
)

// remote is the other processes of a world, and the mail with them while a program runs.
type remote struct {
	processes *mpi.Processes
	mail      *mpi.Mail
	sent      []atomic.Uint64 // by process: letters that store, of this run
	applied   []atomic.Uint64 // how many of them have been done
	owed      []int64         // by process: letters of it that have been done, of which it was not told
	grace     time.Duration   // how long others may take to end a run that has ended here
}

// errElsewhere stands for the error of another process, which Run returns.
var errElsewhere = errors.New("ranks: another process has ended the run")

func newRemote(p *mpi.Processes, limit time.Duration) (*remote, error) {
	mail, err := p.NewMail()
	if err != nil {
		return nil, err
	}
	return &remote{
		processes: p, mail: mail, grace: limit + 20*time.Second,
		sent: make([]atomic.Uint64, p.Size()), applied: make([]atomic.Uint64, p.Size()), owed: make([]int64, p.Size()),
	}, nil
}

// begin begins a run, for which all processes are ready.
func (r *remote) begin() error {
	for p := range r.sent {
		r.sent[p].Store(0)
		r.applied[p].Store(0)
		r.owed[p] = 0
	}
	return r.mail.Begin()
}

// post has a letter sent to a process, with the next flush.
func (r *remote) post(to int, l letter, body []byte) error {
	if l.what.stores() {
		r.sent[to].Add(1)
	}
	return r.mail.Put(to, l.bytes(), body)
}

// postAll has a letter sent to all other processes.
func (r *remote) postAll(l letter) error {
	for p := range r.sent {
		if p == r.processes.Rank {
			continue
		}
		if err := r.post(p, l, nil); err != nil {
			return err
		}
	}
	return nil
}

// isSettled reports whether the first so many letters that store at a process have been done, or nobody is there any more
// who needs them.
func (r *remote) isSettled(process int, sent uint64) bool {
	return r.applied[process].Load() >= sent || r.mail.HasEnded(process)
}

// allSettled reports whether all letters that store have been done.
func (r *remote) allSettled() bool {
	for p := range r.sent {
		if p != r.processes.Rank && !r.isSettled(p, r.sent[p].Load()) {
			return false
		}
	}
	return true
}

// take is Take of the mail, which counts what is to be answered. do gets all letters that are not of the mail itself.
func (r *remote) take(do func(from int, l letter, body []byte) error) (some bool, err error) {
	return r.mail.Take(func(from int, record []byte) error {
		if len(record) < letterBytes {
			return fmt.Errorf("ranks: a letter of %d bytes", len(record))
		}
		l, body := letterIn(record)
		if l.what == letterApplied {
			r.applied[from].Add(uint64(l.n))
			return nil
		}
		if l.what.stores() {
			r.owed[from]++
		}
		return do(from, l, body)
	})
}

// answer tells all processes which of their letters have been done: all that were taken. Then it flushes.
func (r *remote) answer() error {
	for p, n := range r.owed {
		if n == 0 {
			continue
		}
		r.owed[p] = 0
		if err := r.post(p, letter{what: letterApplied, n: n}, nil); err != nil {
			return err
		}
	}
	return r.mail.Flush()
}

// isOver ends the mail of a run that has ended here at some time, and reports whether it has on all processes.
func (r *remote) isOver(since time.Time) (bool, error) {
	if err := r.mail.End(); err != nil {
		return false, err
	}
	if r.mail.IsOver() {
		return true, nil
	}
	if time.Since(since) > r.grace {
		for p := range r.sent {
			if p != r.processes.Rank && !r.mail.HasEnded(p) {
				return false, r.processes.Fail(fmt.Errorf("ranks: %s has not ended the run within %v", r.processes.Name(p), r.grace))
			}
		}
	}
	return false, nil
}

// Close frees the mail.
func (r *remote) Close() error { return r.mail.Close() }
