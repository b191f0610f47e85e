package halo

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// newTransfer makes a message ready. Over a path that stores, one kernel does so into the
// ghosts. A contiguous message goes from field to field. Any other is packed, moved
// from buffer to buffer, and unpacked; so are, over any path, values with gaps.
func (x *Exchanger) newTransfer(m Message) (*Transfer, error) {
	if p := x.plan.Placement; !p.IsLocal(m.From) || !p.IsLocal(m.To) {
		return x.newRemote(m, x.unpackGhosts)
	}
	t, err := x.emptyTransfer(m)
	if err != nil {
		return nil, err
	}
	switch {
	case m.isStored():
		err = x.addStores(t, m)
	case m.Contiguous && x.alike(m):
		src, dst := x.ends(m, m.Parts[0])
		err = x.addRoute(t, m, dst.Span(m.Parts[0].Ghost), src.Span(m.Parts[0].Send))
	default:
		err = x.addBuffers(t, m)
	}
	if err != nil {
		return nil, err
	}
	return t, x.readyEnds(t)
}

// emptyTransfer makes a transfer that does nothing yet.
func (x *Exchanger) emptyTransfer(m Message) (*Transfer, error) {
	from := x.plan.Placement.Devices[m.From]
	sent, err := from.NewSignal("subdomain %d on device %v to send in %v", m.From, from, m.Dir)
	if err != nil {
		return nil, err
	}
	x.resources.Add(sent)
	return &Transfer{
		usable: x.usable,
		out:    end{rank: m.From, work: streams.Pack, name: "pack"},
		in:     end{rank: m.To, work: streams.Unpack, name: "unpack"},
		sent:   sent,
	}, nil
}

// addStores has the sender store into the ghosts, or, where values have gaps, into a buffer of the
// receiver.
func (x *Exchanger) addStores(t *Transfer, m Message) error {
	boxes, typed := x.typedParts(m)
	t.out.work, t.out.name = streams.Exchange, "store"
	t.out.copies = x.copies(m, boxes, func(src, dst kernels.Array, p Part) pack.Copy {
		return pack.Store(dst, p.Ghost, src, p.Send)
	})
	if len(typed) == 0 {
		return nil
	}
	in, err := x.buffer(m.To, m.Bytes)
	if err != nil {
		return err
	}
	for _, parts := range typed {
		if err := x.addTyped(t, m, parts, in, in); err != nil {
			return err
		}
	}
	return nil
}

// addBuffers gives the transfer a buffer at each end.
func (x *Exchanger) addBuffers(t *Transfer, m Message) error {
	out, err := x.buffer(m.From, m.Bytes)
	if err != nil {
		return err
	}
	in, err := x.buffer(m.To, m.Bytes)
	if err != nil {
		return err
	}
	boxes, typed := x.typedParts(m)
	t.out.copies = x.copies(m, boxes, func(src, _ kernels.Array, p Part) pack.Copy {
		return pack.Pack(out.Span(p.Offset, p.Bytes), src, p.Send)
	})
	t.in.copies = x.copies(m, boxes, func(_, dst kernels.Array, p Part) pack.Copy {
		return pack.Unpack(dst, p.Ghost, in.Span(p.Offset, p.Bytes))
	})
	for _, parts := range typed {
		if err := x.addTyped(t, m, parts, out, in); err != nil {
			return err
		}
	}
	return x.addRoute(t, m, in.All(), out.All())
}

// addRoute gives the transfer its way from device to device.
func (x *Exchanger) addRoute(t *Transfer, m Message, dst, src streams.Span) error {
	r, err := p2p.NewRoute(m.Path, dst, src)
	if err != nil {
		return err
	}
	x.resources.Add(r)
	t.out.routes, t.in.routes = append(t.out.routes, r), append(t.in.routes, r)
	return nil
}

// readyEnds makes the launches of both ends.
func (x *Exchanger) readyEnds(t *Transfer) error {
	if err := x.ready(&t.out); err != nil {
		return err
	}
	return x.ready(&t.in)
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
