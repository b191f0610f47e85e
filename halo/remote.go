package halo

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// joinProcesses makes ready to exchange with other processes, where there are some, and has them
// compare their plans. All processes call it.
func (x *Exchanger) joinProcesses() error {
	p := x.plan.Placement
	if p.Processes.IsAlone() || p.isDry() {
		return nil
	}
	if err := x.plan.compare(); err != nil {
		return err
	}
	first, err := p.Processes.Tags(x.plan.mostBetween())
	if err != nil {
		return p.Processes.Fail(err)
	}
	// A thread of the processes waits as long, and then knows more.
	waits := streams.NewWorkerGroup(manyWorkers, 2*p.Processes.Limit())
	x.across = &across{processes: p.Processes, waits: waits, first: first, next: map[[2]int]int{}}
	return nil
}

// agree has all processes fail where one does.
func (x *Exchanger) agree(err error) error {
	if x.across == nil {
		return err
	}
	return x.across.processes.Agree(context.Background(), "make an exchange ready", err)
}

// newRemote makes a message of which this process has one end ready, or none. unpack has the
// receiver take its parts from a buffer.
func (x *Exchanger) newRemote(m Message, unpack func(t *Transfer, m Message, in *streams.Memory) error) (*Transfer, error) {
	p := x.plan.Placement
	if !p.IsLocal(m.From) && !p.IsLocal(m.To) {
		elsewhere := fmt.Errorf("halo: the message from subdomain %d to %d is one of other processes", m.From, m.To)
		return &Transfer{usable: func() error { return elsewhere }}, nil
	}
	t := &Transfer{
		usable: x.usable,
		out:    end{rank: m.From, work: streams.Pack, name: "pack"},
		in:     end{rank: m.To, work: streams.Unpack, name: "unpack"},
	}
	if x.across != nil {
		t.waits = x.across.waits
	}
	if p.IsLocal(m.From) {
		return t, x.addSender(t, m)
	}
	return t, x.addReceiver(t, m, unpack)
}

// addSender has the message packed and sent.
func (x *Exchanger) addSender(t *Transfer, m Message) error {
	out, err := x.buffer(m.From, m.Bytes)
	if err != nil {
		return err
	}
	boxes, typed := x.typedParts(m)
	t.out.copies = x.copies(m, boxes, func(src, _ kernels.Array, p Part) pack.Copy {
		return pack.Pack(out.Span(p.Offset, p.Bytes), src, p.Send)
	})
	for _, parts := range typed {
		if err := x.addTypedOut(t, m, parts, out); err != nil {
			return err
		}
	}
	if x.across != nil {
		to := x.plan.Placement.Owners[m.To]
		whom := fmt.Sprintf("the message of subdomain %d to subdomain %d in %v, to %s", m.From, m.To, m.Dir, x.across.processes.Name(to))
		sender, err := x.across.processes.NewSender(out.All(), to, x.across.tag(x.across.processes.Rank, to), whom)
		if err != nil {
			return err
		}
		x.resources.Add(sender)
		t.out.senders = []*mpi.Sender{sender}
	}
	return x.ready(&t.out)
}

// unpackGhosts has the parts of a message unpacked into the ghosts.
func (x *Exchanger) unpackGhosts(t *Transfer, m Message, in *streams.Memory) error {
	boxes, typed := x.typedParts(m)
	t.in.copies = x.copies(m, boxes, func(_, dst kernels.Array, p Part) pack.Copy {
		return pack.Unpack(dst, p.Ghost, in.Span(p.Offset, p.Bytes))
	})
	for _, parts := range typed {
		if err := x.addTypedIn(t, m, parts, in); err != nil {
			return err
		}
	}
	return nil
}

// addReceiver has the message received and unpacked.
func (x *Exchanger) addReceiver(t *Transfer, m Message, unpack func(t *Transfer, m Message, in *streams.Memory) error) error {
	in, err := x.buffer(m.To, m.Bytes)
	if err != nil {
		return err
	}
	if err := unpack(t, m, in); err != nil {
		return err
	}
	if x.across != nil {
		from := x.plan.Placement.Owners[m.From]
		whom := fmt.Sprintf("the message of subdomain %d to subdomain %d in %v, from %s", m.From, m.To, m.Dir, x.across.processes.Name(from))
		receiver, err := x.across.processes.NewReceiver(in.All(), from, x.across.tag(from, x.across.processes.Rank), whom)
		if err != nil {
			return err
		}
		x.resources.Add(receiver)
		t.in.receivers = []*mpi.Receiver{receiver}
	}
	return x.ready(&t.in)
}

// tell has the other processes told of a failure of this one.
func (x *Exchanger) tell(err error) error {
	if x.across == nil || err == nil {
		return err
	}
	first := x.across.processes.Err()
	switch {
	case first == nil:
		return x.across.processes.Fail(err)
	case errors.Is(err, first):
		return err
	}
	return errors.Join(err, first)
}
