package halo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Accumulator makes the exchange of a plan in reverse: the ghosts of every subdomain
// are added to the points that they stand for, and stay as they are. It is the
// adjoint of the exchange, which scatters of particles and of finite elements, and
// gradients, need.
//
// Start, Wait and Exchange are those of an Exchanger, but for what may be done in
// between: owned points that neighbours hold as ghosts are neither read nor
// written, and ghosts not written. What several neighbours add to one point is
// added in the order of the plan, so that the sums have the same bits every time.
// Sums of whole numbers wrap.
type Accumulator struct{ x *Exchanger }

// NewAccumulator makes ready to add up the ghosts of the fields, one for each Spec of the plan and in that order. It is
// an error if their elements are no numbers. Messages take the paths of the plan, the other way. Close frees what it
// holds. Where several processes share the grid, all call it, as NewExchanger.
func NewAccumulator(plan *Plan, c *kernels.Compiler, fields ...*Field) (r *Accumulator, err error) {
	x, err := newExchanger(plan, c, fields)
	for _, f := range fields {
		if err == nil && f.Spec.IsTyped() {
			err = fmt.Errorf("halo: field %q: values of type %v are no numbers to be added", f.Spec.Name, f.Spec.Type)
		}
	}
	if err = plan.agree("add up ghosts of fields", err); err != nil {
		return nil, err
	}
	x.plan = plan.reversed()
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	if err := x.joinProcesses(); err != nil {
		return nil, err
	}
	if err := x.agree(x.makeReturns(c)); err != nil {
		return nil, err
	}
	return &Accumulator{x}, nil
}

// makeReturns makes all messages ready.
func (x *Exchanger) makeReturns(c *kernels.Compiler) error {
	if err := x.addCopiers(c); err != nil {
		return err
	}
	for _, m := range x.plan.Messages {
		t, err := x.newReturn(m)
		if err != nil {
			return fmt.Errorf("halo: ghosts of subdomain %d returned in %v: %w", m.From, m.Dir, err)
		}
		x.transfers = append(x.transfers, t)
	}
	return nil
}

// reversed returns the plan with all messages turned round.
func (p *Plan) reversed() *Plan {
	turned := *p
	turned.Messages = nil
	for _, m := range p.Messages {
		m.From, m.To, m.Dir = m.To, m.From, m.Dir.Opposite()
		parts := m.Parts
		m.Parts = nil
		for _, part := range parts {
			part.Dir = part.Dir.Opposite()
			part.Send, part.Ghost = part.Ghost, part.Send
			m.Parts = append(m.Parts, part)
		}
		turned.Messages = append(turned.Messages, m)
	}
	return &turned
}

// newReturn makes a message of a reversed plan ready: it is brought into a buffer of
// the owner, and added there.
func (x *Exchanger) newReturn(m Message) (*Transfer, error) {
	if p := x.plan.Placement; !p.IsLocal(m.From) || !p.IsLocal(m.To) {
		return x.newRemote(m, x.addPacked)
	}
	t, err := x.emptyTransfer(m)
	if err != nil {
		return nil, err
	}
	t.out.name = "pack ghosts"
	if m.Contiguous && !m.isStored() {
		err = x.returnAsItLies(t, m)
	} else {
		err = x.returnPacked(t, m)
	}
	if err != nil {
		return nil, err
	}
	return t, x.readyEnds(t)
}

// returnAsItLies brings a contiguous part, with what lies between its rows.
func (x *Exchanger) returnAsItLies(t *Transfer, m Message) error {
	src, _ := x.ends(m, m.Parts[0])
	ghosts := src.Span(m.Parts[0].Send)
	in, err := x.buffer(m.To, ghosts.Length)
	if err != nil {
		return err
	}
	if err := x.addRoute(t, m, in.All(), ghosts); err != nil {
		return err
	}
	return x.addSums(t, m, func(Part) pack.Place {
		return pack.Place{Data: in.All(), Pitch: src.Layout.Pitch, Plane: src.Layout.Plane}
	})
}

// returnPacked brings all parts without gaps. Over path direct, the packing kernel
// stores into the owner's buffer.
func (x *Exchanger) returnPacked(t *Transfer, m Message) error {
	in, err := x.buffer(m.To, m.Bytes)
	if err != nil {
		return err
	}
	out := in
	if !m.isStored() {
		if out, err = x.buffer(m.From, m.Bytes); err != nil {
			return err
		}
		if err := x.addRoute(t, m, in.All(), out.All()); err != nil {
			return err
		}
	}
	t.out.copies = x.copies(m, m.Parts, func(src, _ kernels.Array, p Part) pack.Copy {
		return pack.Pack(out.Span(p.Offset, p.Bytes), src, p.Send)
	})
	return x.addPacked(t, m, in)
}

// addPacked has the receiver add the parts of a message that lies packed in a buffer.
func (x *Exchanger) addPacked(t *Transfer, m Message, in *streams.Memory) error {
	return x.addSums(t, m, func(p Part) pack.Place {
		return pack.Dense(in.Span(p.Offset, p.Bytes), p.Send.Size())
	})
}

// addSums has the receiver add the parts of a message, each from its place, to its points. Parts
// that meet in a point, as a face and an edge do, are launches one after another.
func (x *Exchanger) addSums(t *Transfer, m Message, place func(p Part) pack.Place) error {
	for _, parts := range apart(m.Parts) {
		var all []pack.Add
		for _, p := range parts {
			_, dst := x.ends(m, p)
			all = append(all, pack.Add{
				Copy: pack.Copy{Dst: pack.In(dst, p.Ghost), Src: place(p), Size: p.Send.Size(),
					ElementSize: dst.Layout.ElementSize},
				Number: kernels.Number(x.fields[p.Field].Spec.Element),
			})
		}
		k, err := x.copiers[x.plan.Placement.Devices[m.To]].Adds("add ghosts", all...)
		if err != nil {
			return err
		}
		x.resources.Add(k)
		t.in.apart = append(t.in.apart, launch{k.Kernel})
	}
	return nil
}

// apart cuts a list of parts into lists of which none arrives twice at a point.
func apart(parts []Part) (all [][]Part) {
	first := 0
	for i, p := range parts {
		if slices.ContainsFunc(parts[first:i], p.meets) {
			all, first = append(all, parts[first:i]), i
		}
	}
	return append(all, parts[first:])
}

// meets reports whether two parts arrive at the same point of the same array.
func (p Part) meets(q Part) bool {
	return p.Field == q.Field && p.Component == q.Component && !p.Ghost.Intersect(q.Ghost).Empty()
}

var errNoAccumulator = errors.New("halo: the accumulator is nil: see NewAccumulator")

// exchanger returns what makes the sums, or an error if there is no accumulator.
func (r *Accumulator) exchanger() (*Exchanger, error) {
	if r == nil {
		return nil, errNoAccumulator
	}
	return r.x, nil
}

// Start queues the sums and returns; see Exchanger.Start.
func (r *Accumulator) Start(at []*streams.Stream) error {
	x, err := r.exchanger()
	if err != nil {
		return err
	}
	return x.Start(at)
}

// Wait makes the streams wait for them, on the devices; see Exchanger.Wait.
func (r *Accumulator) Wait(at []*streams.Stream) error {
	x, err := r.exchanger()
	if err != nil {
		return err
	}
	return x.Wait(at)
}

// Exchange is Start and Wait.
func (r *Accumulator) Exchange(at []*streams.Stream) error {
	x, err := r.exchanger()
	if err != nil {
		return err
	}
	return x.Exchange(at)
}

// Close frees what it holds, see Exchanger.Close.
func (r *Accumulator) Close() error {
	if r == nil {
		return nil
	}
	return r.x.Close()
}
