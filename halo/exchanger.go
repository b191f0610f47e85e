package halo

import (
	"errors"
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Exchanger holds the buffers and launches that carry out a plan for some
// fields. All of it is made by NewExchanger; an exchange makes nothing.
type Exchanger struct {
	streams.Closers
	plan      *Plan
	movers    map[*streams.Device]*kernels.Mover
	transfers [][]*Transfer // by field, by message
}

// NewExchanger makes ready to exchange the given fields, each by itself. They
// have the plan's placement, width and element size. Close frees what it holds.
func NewExchanger(plan *Plan, c *kernels.Compiler, fields ...*Field) (x *Exchanger, err error) {
	x = &Exchanger{plan: plan, movers: map[*streams.Device]*kernels.Mover{}}
	made := x
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	for _, d := range plan.Placement.Devices {
		if x.movers[d], err = c.NewMover(d); err != nil {
			return nil, err
		}
	}
	for i, f := range fields {
		if f.Placement != plan.Placement || f.Width != plan.Width {
			return nil, fmt.Errorf("halo: field %d has another placement or ghost width than the plan", i)
		}
		if size := f.Parts[0].Layout.ElementSize; size != plan.ElementSize {
			return nil, fmt.Errorf("halo: field %d has elements of %d bytes, the plan is for %d", i, size, plan.ElementSize)
		}
		var row []*Transfer
		for _, m := range plan.Messages {
			t, err := x.newTransfer(m, f)
			if err != nil {
				return nil, fmt.Errorf("halo: message from subdomain %d in %v: %w", m.From, m.Dir, err)
			}
			row = append(row, t)
		}
		x.transfers = append(x.transfers, row)
	}
	return x, nil
}

// Transfer returns the work of one message of the plan, by its index, for one
// of the fields, by its index.
func (x *Exchanger) Transfer(field, message int) *Transfer { return x.transfers[field][message] }

// Transfer carries one message of one field, any number of times.
//
// The sender's worker calls Send and the receiver's Receive, each as often as
// the other and on a stream of its own device. What a transfer carries next
// may overwrite what it carried last: before the n-th Send is queued, the work
// before it must depend on the receiver having used what the Send before it
// brought. Where every message has one in return, as in a sweep between two
// exchanges, that is so of two fields in turns.
type Transfer struct {
	pack, unpack *kernels.Copies // nil where the message travels as it lies
	route        *p2p.Route      // nil from a subdomain to itself
	sent         *streams.Signal
	received     int64
}

// newTransfer makes a message ready. A contiguous one goes from field to
// field; any other is packed, moved from buffer to buffer, and unpacked. To
// itself a subdomain moves no buffer.
func (x *Exchanger) newTransfer(m Message, f *Field) (t *Transfer, err error) {
	from, to := x.plan.Placement.Devices[m.From], x.plan.Placement.Devices[m.To]
	t = &Transfer{}
	if t.sent, err = from.NewSignal("subdomain %d on device %v to send in %v", m.From, from, m.Dir); err != nil {
		return nil, err
	}
	x.Add(t.sent)
	if m.Contiguous {
		err = x.route(t, m, f.Parts[m.To].Span(m.Ghost), f.Parts[m.From].Span(m.Send))
		return t, err
	}
	out, err := from.Alloc(m.Bytes)
	if err != nil {
		return nil, err
	}
	x.Add(out)
	in := out
	if m.From != m.To {
		if in, err = to.Alloc(m.Bytes); err != nil {
			return nil, err
		}
		x.Add(in)
		if err = x.route(t, m, in.All(), out.All()); err != nil {
			return nil, err
		}
	}
	if t.pack, err = x.movers[from].Copies("pack", kernels.Pack(out.All(), f.Parts[m.From], m.Send)); err != nil {
		return nil, err
	}
	x.Add(t.pack)
	if t.unpack, err = x.movers[to].Copies("unpack", kernels.Unpack(f.Parts[m.To], m.Ghost, in.All())); err != nil {
		return nil, err
	}
	x.Add(t.unpack)
	return t, nil
}

// route gives the transfer its way from device to device.
func (x *Exchanger) route(t *Transfer, m Message, dst, src streams.Span) (err error) {
	if t.route, err = p2p.NewRoute(m.Path, dst, src); err != nil {
		return err
	}
	x.Add(t.route)
	return nil
}

// Send queues the sender's part on a stream of the sender.
func (t *Transfer) Send(s *streams.Stream) error {
	if t.pack != nil {
		if err := s.Launch(t.pack.Kernel); err != nil {
			return err
		}
	}
	if t.route != nil {
		if err := t.route.Push(s); err != nil {
			return err
		}
	}
	return t.sent.Record(s)
}

// Receive queues the receiver's part on a stream of the receiver. It waits on
// the host until the sender's worker has queued its part.
func (t *Transfer) Receive(c *streams.Crew, s *streams.Stream) error {
	t.received++
	if err := t.sent.Wait(c, s, t.received); err != nil {
		return err
	}
	if t.route != nil {
		if err := t.route.Pull(s); err != nil {
			return err
		}
	}
	if t.unpack != nil {
		return s.Launch(t.unpack.Kernel)
	}
	return nil
}
