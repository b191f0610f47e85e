package mpi

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/internal/nccl"
	"github.com/halox/halox/streams"
)

// linked transfers a message by NCCL, which matches messages only by their order. So both ends agree on the order
// for each message, by notes over MPI: the receiver announces that the span may be written. The sender replies
// with a number when the message is packed and no other message of the pair is in flight. Only then do both queue
// the message. Thus no stream waits for another process that has not begun, and a transfer that exceeds the limit
// is aborted by its communicator.
type linked struct {
	*message
	pairs  *pairs
	sends  bool
	limit  time.Duration
	pair   *pair           // of the message in flight; nil before the first
	notes  *binding.Memory // of this end and of the other end
	mine   binding.Request
	theirs binding.Request
}

// linkNote is the length of a note in bytes: an id and a number. A note of the receiver has its device instead of
// the number.
const linkNote = len(nccl.ID{}) + 8

// newLinked allocates the notes.
func newLinked(m *message, p *pairs, sends bool) (*linked, error) {
	notes, err := binding.NewMemory(2 * linkNote)
	if err != nil {
		return nil, err
	}
	m.resources.Add(closer(notes.Free))
	return &linked{message: m, pairs: p, sends: sends, limit: m.processes.options.Limit, notes: notes}, nil
}

// carry implements carrier. A failure aborts the communicator, since a transfer in flight would block the device.
func (l *linked) carry() (err error) {
	defer func() {
		if err != nil && l.pair != nil {
			_ = l.pair.abort(err) // err is returned
		}
	}()
	if l.sends {
		return l.send()
	}
	return l.receive()
}

// send sends one message.
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

// receive receives one message.
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

// together is the common part of both ends once they have agreed: it queues the message, and waits until the
// device has completed it.
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

// carried reports whether the device has completed the message.
func (l *linked) carried() (bool, error) {
	if done, err := l.event.Done(); done || err != nil {
		return done, err
	}
	_, err := l.pair.ready()
	return false, err
}

// await waits until done returns true.
func (l *linked) await(what string, done func() (bool, error)) error {
	late := func() error { return fmt.Errorf("NCCL: waited too long for %s: %v", what, l.limit) }
	return l.processes.library.Await(l.processes.failure.ctx, l.limit, done, late)
}

// done waits for a note.
func (l *linked) done(r *binding.Request) error {
	return r.Wait(l.processes.failure.ctx, l.limit)
}

// note sends a note. Sender and receiver use different communicators, because messages in both directions have the
// same tag.
func (l *linked) note(id nccl.ID, number uint64) error {
	copy(l.notes.Bytes, id[:])
	binary.LittleEndian.PutUint64(l.notes.Bytes[len(id):], number)
	to := l.processes.control
	if l.sends {
		to = l.processes.data
	}
	return to.Isend(&l.mine, l.notes.Bytes[:linkNote], l.other, l.tag)
}

// expect begins to receive a note of the other end.
func (l *linked) expect() error {
	from := l.processes.data
	if l.sends {
		from = l.processes.control
	}
	return from.Irecv(&l.theirs, l.notes.Bytes[linkNote:], l.other, l.tag)
}

// read returns the content of the note of the other end.
func (l *linked) read() (id nccl.ID, number uint64) {
	note := l.notes.Bytes[linkNote:]
	return nccl.ID(note[:len(id)]), binary.LittleEndian.Uint64(note[len(id):])
}

// progress implements carrier: nothing arrives before it is requested.
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

// tryLimit bounds the time of a trial message. The first connections take seconds.
const tryLimit = 20 * time.Second

// TryNCCL returns an error, on all processes, unless NCCL transfers messages between their devices correctly. All
// processes call it, each with one of its devices. It opens the library in the variable HALOX_NCCL, or else
// libnccl.so.2, and sends messages of several lengths to the ranks at distance 1, 2, 4 and so on. An error of NCCL
// here is not a failure of the processes.
func (p *Processes) TryNCCL(ctx context.Context, d *streams.Device) error {
	if p.pairs != nil {
		return nil
	}
	made, err := p.openNCCL(ctx, d)
	if err != nil {
		return err
	}
	p.pairs = made
	if err := p.Agree(ctx, "send messages by NCCL", p.sendByNCCL(d)); err != nil {
		p.pairs = nil
		return errors.Join(err, made.close(err))
	}
	return nil
}

// NCCL returns the library and its transports, or "" before TryNCCL.
func (p *Processes) NCCL() string {
	if p.pairs == nil {
		return ""
	}
	return p.pairs.String()
}

// openNCCL opens the same library on all processes.
func (p *Processes) openNCCL(ctx context.Context, d *streams.Device) (made *pairs, err error) {
	if d.HostMemory {
		err = fmt.Errorf("mpi: %w", errNoDeviceMemory)
	} else if made, err = openPairs(os.Getenv(nccl.Variable), p.library); err != nil {
		err = fmt.Errorf("mpi: %w", err)
	}
	version := ""
	if err == nil {
		version = made.library.Version
	}
	all, gathered := Gather(ctx, p, "compare versions of NCCL", version)
	for rank, v := range all {
		if err == nil && v != "" && v != version {
			err = fmt.Errorf("mpi: %s has NCCL %s, %s has %s", p.Name(rank), v, p.Name(p.Rank), version)
		}
	}
	if err := cmp.Or(gathered, p.Agree(ctx, "open NCCL", err)); err != nil {
		if made != nil {
			err = errors.Join(err, made.close(err))
		}
		return nil, err
	}
	return made, nil
}

// sendByNCCL exchanges messages of all lengths with other processes. Each message has a goroutine on each end.
func (p *Processes) sendByNCCL(d *streams.Device) (err error) {
	tag, err := p.Tags(1)
	if err != nil {
		return err
	}
	t := &trial{rank: p.Rank, by: "by NCCL", limit: p.options.Limit}
	t.carry = func(to, from int, n int64) error {
		received := make(chan error, 1)
		go func() { received <- p.turnByNCCL(t.in.Span(0, n), from, tag, false) }()
		err := p.turnByNCCL(t.out.Span(0, n), to, tag, true)
		return errors.Join(err, <-received)
	}
	if err := t.open(d); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.resources.Close()) }()
	return t.withAll(p.Size())
}

// turnByNCCL transfers one message.
func (p *Processes) turnByNCCL(s streams.Span, other, tag int, sends bool) (err error) {
	name := fmt.Sprintf("%d bytes by NCCL from %s", s.Length, p.Name(other))
	if sends {
		name = fmt.Sprintf("%d bytes by NCCL to %s", s.Length, p.Name(other))
	}
	m, err := p.newMessage(s, other, tag, name)
	if err != nil {
		return err
	}
	l, err := newLinked(m, p.pairs, sends)
	if err != nil {
		return errors.Join(err, m.resources.Close())
	}
	l.limit = min(l.limit, tryLimit)
	if err := l.carry(); err != nil {
		err = fmt.Errorf("mpi: %s: %w", name, err)
		if !l.quiet() {
			return errors.Join(err, m.stream.Close())
		}
		return errors.Join(err, m.resources.Close())
	}
	return m.resources.Close()
}
