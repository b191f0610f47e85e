package mpi

import (
	"encoding/binary"
	"fmt"
	"time"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/internal/nccl"
)

// linked carries a message by NCCL, which knows messages by their order alone. So both ends agree on it for each message, by
// notes over MPI: the receiver says that the span may be written, and the sender, when the message is packed and no other of
// the pair is under way, which number it has. Only then do both queue it. No stream ever waits for another process that has
// not begun, and what is not over in time is ended by its communicator.
type linked struct {
	*message
	pairs  *pairs
	sends  bool
	limit  time.Duration
	pair   *pair           // of the message that is under way; nil before the first
	notes  *binding.Memory // mine, and the other end's
	mine   binding.Request
	theirs binding.Request
}

// linkNote is the length of a note: an id and a number. The receiver's has its device in place of the number.
const linkNote = len(nccl.ID{}) + 8

// newLinked makes room for notes.
func newLinked(m *message, p *pairs, sends bool) (*linked, error) {
	notes, err := binding.NewMemory(2 * linkNote)
	if err != nil {
		return nil, err
	}
	m.resources.Add(closer(notes.Free))
	return &linked{message: m, pairs: p, sends: sends, limit: m.processes.options.Limit, notes: notes}, nil
}

// carry implements carrier. What fails ends the communicator, since what is under way would hold the device up.
func (l *linked) carry() (err error) {
	defer func() {
		if err != nil && l.pair != nil {
			_ = l.pair.abort(err) // which is returned
		}
	}()
	if l.sends {
		return l.send()
	}
	return l.receive()
}

// send sends.
func (l *linked) send() error {
	if err := l.expect(); err != nil {
		return err
	}
	if err := l.ready.Sync(l.limit); err != nil {
		return err
	}
	if err := l.done(&l.theirs); err != nil {
		return err
	}
	_, there := l.read()
	pair, err := l.pairs.to(pairKey{l.span.Memory.Device(), l.other, there})
	if err != nil {
		return err
	}
	pair.turn.Lock()
	defer pair.turn.Unlock()
	l.pair = pair
	if err := l.note(pair.id, pair.over()); err != nil {
		return err
	}
	return l.together()
}

// receive receives.
func (l *linked) receive() error {
	if err := l.expect(); err != nil {
		return err
	}
	if err := l.ready.Sync(l.limit); err != nil {
		return err
	}
	if err := l.note(nccl.ID{}, uint64(l.span.Memory.Device().ID)); err != nil {
		return err
	}
	if err := l.done(&l.theirs); err != nil {
		return err
	}
	id, number := l.read()
	l.pair = l.pairs.from(id, l.span.Memory.Device())
	turn := func() (bool, error) { return l.pair.over() == number, nil }
	if err := l.await("its turn", turn); err != nil {
		return err
	}
	return l.together()
}

// together is what both ends do once they have agreed: the message is queued, and is over when the device is done with it.
func (l *linked) together() error {
	if err := l.pair.begin(); err != nil {
		return err
	}
	if err := l.await("a communicator", l.pair.ready); err != nil {
		return err
	}
	began := time.Now()
	if err := l.pair.queue(l.span, l.stream); err != nil {
		return err
	}
	if err := l.await("NCCL to queue it", l.pair.ready); err != nil {
		return err
	}
	if err := l.stream.Record(l.event); err != nil {
		return err
	}
	if err := l.await("NCCL to carry it", l.carried); err != nil {
		return err
	}
	l.sent(began)
	if err := l.done(&l.mine); err != nil {
		return err
	}
	l.pair.next()
	return l.over()
}

// carried reports whether the device is done with the message.
func (l *linked) carried() (bool, error) {
	if done, err := l.event.Done(); done || err != nil {
		return done, err
	}
	_, err := l.pair.ready()
	return false, err
}

// await waits until something is done.
func (l *linked) await(what string, done func() (bool, error)) error {
	late := func() error { return fmt.Errorf("NCCL: waited too long for %s: %v", what, l.limit) }
	return l.processes.library.Await(l.processes.failure.ctx, l.limit, done, late)
}

// done waits for a note.
func (l *linked) done(r *binding.Request) error {
	return r.Wait(l.processes.failure.ctx, l.limit)
}

// note sends a note. The sender's and the receiver's have communicators of their own, as messages in both directions have one tag.
func (l *linked) note(id nccl.ID, number uint64) error {
	copy(l.notes.Bytes, id[:])
	binary.LittleEndian.PutUint64(l.notes.Bytes[len(id):], number)
	to := l.processes.control
	if l.sends {
		to = l.processes.data
	}
	return to.Isend(&l.mine, l.notes.Bytes[:linkNote], l.other, l.tag)
}

// expect begins to receive the other end's note.
func (l *linked) expect() error {
	from := l.processes.data
	if l.sends {
		from = l.processes.control
	}
	return from.Irecv(&l.theirs, l.notes.Bytes[linkNote:], l.other, l.tag)
}

// read returns what it says.
func (l *linked) read() (id nccl.ID, number uint64) {
	note := l.notes.Bytes[linkNote:]
	return nccl.ID(note[:len(id)]), binary.LittleEndian.Uint64(note[len(id):])
}

// progress implements carrier: nothing comes before it is asked for.
func (*linked) progress() {}

// quiet implements carrier.
func (l *linked) quiet() bool {
	for _, r := range []*binding.Request{&l.mine, &l.theirs} {
		if done, err := r.Test(); !done || err != nil {
			return false
		}
	}
	return true
}
