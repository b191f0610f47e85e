package halo

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Transfer carries one message, any number of times.
//
// The sender's worker calls Send and the receiver's Receive, each as often as
// the other and on a stream of its own device. What a transfer carries next
// may overwrite what it carried last: before the n-th Send is queued, the work
// before it must depend on the receiver having used what the Send before it
// brought. Start sees to that. So do sweeps between two exchanges, where every
// message has one in return and two fields take turns.
type Transfer struct {
	pack     *kernels.Copies // into a buffer, or with path direct into the ghosts; nil where the message travels as it lies
	route    *p2p.Route      // from device to device; nil with path direct
	unpack   *kernels.Copies // nil where nothing was packed
	sent     *streams.Signal
	received int64

	packCopies, unpackCopies []kernels.Copy // what pack and unpack do
}

// newTransfer makes a message ready. Over path direct, one kernel stores into the
// ghosts. A contiguous message goes from field to field. Any other is packed, moved
// from buffer to buffer, and unpacked.
func (x *Exchanger) newTransfer(m Message) (t *Transfer, err error) {
	from := x.plan.Placement.Devices[m.From]
	t = &Transfer{}
	if t.sent, err = from.NewSignal("subdomain %d on device %v to send in %v", m.From, from, m.Dir); err != nil {
		return nil, err
	}
	x.resources.Add(t.sent)
	switch {
	case m.Path == p2p.Direct:
		t.packCopies = x.copies(m, func(src, dst kernels.Array, p Part) kernels.Copy {
			return kernels.Store(dst, p.Ghost, src, p.Send)
		})
	case m.Contiguous && x.alike(m):
		src, dst := x.ends(m, m.Parts[0])
		err = x.addRoute(t, m, dst.Span(m.Parts[0].Ghost), src.Span(m.Parts[0].Send))
	default:
		err = x.addBuffers(t, m)
	}
	if err != nil {
		return nil, err
	}
	kind, name := streams.Pack, "pack"
	if m.Path == p2p.Direct {
		kind, name = streams.Exchange, "store"
	}
	if t.pack, err = x.launch(m.From, kind, name, t.packCopies); err != nil {
		return nil, err
	}
	t.unpack, err = x.launch(m.To, streams.Unpack, "unpack", t.unpackCopies)
	return t, err
}

// alike reports whether a contiguous message is one piece of equal length at both
// ends, as it is but for arrays that the caller laid out: those may differ, and what
// lies between their rows is not to be overwritten.
func (x *Exchanger) alike(m Message) bool {
	src, dst := x.ends(m, m.Parts[0])
	from, to := src.Span(m.Parts[0].Send), dst.Span(m.Parts[0].Ghost)
	whole := to.Length == m.Bytes || dst.Layout.Padded()
	return whole && from.Length == to.Length && src.Layout.Pitch == dst.Layout.Pitch
}

// ends returns the arrays that a part leaves and arrives in.
func (x *Exchanger) ends(m Message, p Part) (src, dst kernels.Array) {
	f := x.fields[p.Field]
	return f.Array(m.From, p.Component), f.Array(m.To, p.Component)
}

// addBuffers gives the transfer a buffer at each end.
func (x *Exchanger) addBuffers(t *Transfer, m Message) error {
	out, err := x.plan.Placement.Devices[m.From].Alloc(m.Bytes)
	if err != nil {
		return err
	}
	x.resources.Add(out)
	in, err := x.plan.Placement.Devices[m.To].Alloc(m.Bytes)
	if err != nil {
		return err
	}
	x.resources.Add(in)
	if err := x.addRoute(t, m, in.All(), out.All()); err != nil {
		return err
	}
	t.packCopies = x.copies(m, func(src, _ kernels.Array, p Part) kernels.Copy {
		return kernels.Pack(out.Span(p.Offset, p.Bytes), src, p.Send)
	})
	t.unpackCopies = x.copies(m, func(_, dst kernels.Array, p Part) kernels.Copy {
		return kernels.Unpack(dst, p.Ghost, in.Span(p.Offset, p.Bytes))
	})
	return nil
}

// copies returns one copy for each part of a message.
func (x *Exchanger) copies(m Message, one func(src, dst kernels.Array, p Part) kernels.Copy) (all []kernels.Copy) {
	for _, p := range m.Parts {
		src, dst := x.ends(m, p)
		all = append(all, one(src, dst, p))
	}
	return all
}

// launch makes one launch of copies on the device of a rank; nil if there are none.
func (x *Exchanger) launch(rank int, kind streams.Work, name string, copies []kernels.Copy) (*kernels.Copies, error) {
	if len(copies) == 0 {
		return nil, nil
	}
	k, err := x.copiers[x.plan.Placement.Devices[rank]].CopiesAs(kind, name, copies...)
	if err != nil {
		return nil, err
	}
	x.resources.Add(k)
	return k, nil
}

// addRoute gives the transfer its way from device to device.
func (x *Exchanger) addRoute(t *Transfer, m Message, dst, src streams.Span) (err error) {
	if t.route, err = p2p.NewRoute(m.Path, dst, src); err != nil {
		return err
	}
	x.resources.Add(t.route)
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
func (t *Transfer) Receive(c *streams.WorkerGroup, s *streams.Stream) error {
	t.received++
	if err := t.sent.Wait(c, s, t.received); err != nil {
		return err
	}
	return t.place(s)
}

// place queues what brings an arrived message to its ghosts.
func (t *Transfer) place(s *streams.Stream) error {
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
