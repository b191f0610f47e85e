package halo

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
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
	t.in.copies = x.unpackCopies(m, boxes, in)
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
func (x *Exchanger) newRemote(m Message, unpack func(t *Transfer, m Message, in *streams.Memory) error) (*Transfer,
	error) {
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
		whom := fmt.Sprintf("the message of subdomain %d to subdomain %d in %v, to %s", m.From, m.To, m.Dir,
			x.across.processes.Name(to))
		sender, err := x.across.processes.NewSender(out.All(), to, x.across.tag(x.across.processes.Rank, to), whom)
		if err != nil {
			return err
		}
		x.resources.Add(sender)
		t.out.senders = []*mpi.Sender{sender}
	}
	return x.ready(&t.out)
}

// unpackCopies returns the copies of the parts of a message into the ghosts.
func (x *Exchanger) unpackCopies(m Message, boxes []Part, in *streams.Memory) []pack.Copy {
	return x.copies(m, boxes, func(_, dst kernels.Array, p Part) pack.Copy {
		return pack.Unpack(dst, p.Ghost, in.Span(p.Offset, p.Bytes))
	})
}

// unpackGhosts has the parts of a message unpacked into the ghosts.
func (x *Exchanger) unpackGhosts(t *Transfer, m Message, in *streams.Memory) error {
	boxes, typed := x.typedParts(m)
	t.in.copies = x.unpackCopies(m, boxes, in)
	for _, parts := range typed {
		if err := x.addTypedIn(t, m, parts, in); err != nil {
			return err
		}
	}
	return nil
}

// addReceiver has the message received and unpacked.
func (x *Exchanger) addReceiver(t *Transfer, m Message, unpack func(t *Transfer, m Message,
	in *streams.Memory) error) error {
	in, err := x.buffer(m.To, m.Bytes)
	if err != nil {
		return err
	}
	if err := unpack(t, m, in); err != nil {
		return err
	}
	if x.across != nil {
		from := x.plan.Placement.Owners[m.From]
		whom := fmt.Sprintf("the message of subdomain %d to subdomain %d in %v, from %s", m.From, m.To, m.Dir,
			x.across.processes.Name(from))
		receiver, err := x.across.processes.NewReceiver(in.All(), from, x.across.tag(from, x.across.processes.Rank),
			whom)
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

// boxType returns the type of the values in a box of an array: displacement 0 is the first point.
func (s Spec) boxType(l domain.Layout, box domain.Box) (t *datatype.Type, err error) {
	t = s.Type
	extent, _ := s.valueBytes()
	point := int64(l.ElementSize)
	n := box.Size()
	for _, d := range []struct {
		count  int
		stride int64 // bytes
	}{{l.ElementSize / extent, int64(extent)}, {n[0], point}, {n[1], point * l.Pitch}, {n[2], point * l.Plane}} {
		if t, err = datatype.HVector(d.count, 1, d.stride, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// typedParts cuts the parts of a message into those that are copied as boxes, and, field by field,
// those of types with gaps, which lie one after another in the message.
func (x *Exchanger) typedParts(m Message) (boxes []Part, typed [][]Part) {
	for _, p := range m.Parts {
		last := len(typed) - 1
		switch {
		case !x.plan.Specs[p.Field].hasGaps():
			boxes = append(boxes, p)
		case last >= 0 && typed[last][0].Field == p.Field:
			typed[last] = append(typed[last], p)
		default:
			typed = append(typed, []Part{p})
		}
	}
	return boxes, typed
}

// side is one end of the parts of a field: which boxes, in which arrays.
type side struct {
	rank  int
	field *Field
	parts []Part
	box   func(p Part) domain.Box
}

// message returns the layout of the boxes, one after another, and where they lie.
func (s *side) message() (*packing.MessageLayout, packing.Place, error) {
	spec := s.field.Spec
	whole := s.field.block(s.rank)
	var displacements []int64
	var ones []int
	var boxes []*datatype.Type
	for _, p := range s.parts {
		a := s.field.Array(s.rank, p.Component)
		t, err := spec.boxType(a.Layout, s.box(p))
		if err != nil {
			return nil, packing.Place{}, err
		}
		first := a.Data.Offset - whole.Offset + a.Layout.Offset(s.box(p).Lo)*int64(a.Layout.ElementSize)
		displacements, ones, boxes = append(displacements, first-spec.Type.LB()), append(ones, 1), append(boxes, t)
	}
	t, err := datatype.Struct(ones, displacements, boxes)
	if err != nil {
		return nil, packing.Place{}, err
	}
	m, err := packing.NewMessageLayout(t, 1)
	return m, packing.Place{Data: whole}, err
}

// addTyped has both ends of a transfer pack and unpack the parts of one field: from the sender into
// its buffer, which over path direct is the receiver's, and from there. The engine is the one that
// is fastest for the layout.
func (x *Exchanger) addTyped(t *Transfer, m Message, parts []Part, out, in *streams.Memory) error {
	if err := x.addTypedOut(t, m, parts, out); err != nil {
		return err
	}
	return x.addTypedIn(t, m, parts, in)
}

// spanOf returns where parts that lie one after another are in a message.
func spanOf(parts []Part, message *streams.Memory) streams.Span {
	bytes := int64(0)
	for _, p := range parts {
		bytes += p.Bytes
	}
	return message.Span(parts[0].Offset, bytes)
}

// addTypedOut has the sender pack the parts of one field.
func (x *Exchanger) addTypedOut(t *Transfer, m Message, parts []Part, out *streams.Memory) error {
	field := x.fields[parts[0].Field]
	from := side{m.From, field, parts, func(p Part) domain.Box { return p.Send }}
	layout, place, err := from.message()
	if err != nil {
		return err
	}
	pack, err := x.packers[field.Placement.Devices[m.From]].Pack(packing.Auto, spanOf(parts, out), place, layout)
	if err != nil {
		return err
	}
	x.resources.Add(pack)
	t.out.apart = append(t.out.apart, pack)
	return nil
}

// addTypedIn has the receiver unpack them.
func (x *Exchanger) addTypedIn(t *Transfer, m Message, parts []Part, in *streams.Memory) error {
	field := x.fields[parts[0].Field]
	to := side{m.To, field, parts, func(p Part) domain.Box { return p.Ghost }}
	layout, place, err := to.message()
	if err != nil {
		return err
	}
	unpack, err := x.packers[field.Placement.Devices[m.To]].Unpack(packing.Auto, place, spanOf(parts, in), layout)
	if err != nil {
		return err
	}
	x.resources.Add(unpack)
	t.in.apart = append(t.in.apart, unpack)
	return nil
}

// addPackers makes what packs types with gaps on each device, if a field has one.
func (x *Exchanger) addPackers(c *kernels.Compiler) (err error) {
	if !x.plan.hasGaps() {
		return nil
	}
	x.packers = map[*streams.Device]*packing.Packer{}
	for _, d := range x.plan.Placement.Devices {
		if d == nil || x.packers[d] != nil {
			continue
		}
		if x.packers[d], err = packing.New(c, d, packing.Options{}); err != nil {
			return err
		}
		x.resources.Add(x.packers[d])
	}
	return nil
}
