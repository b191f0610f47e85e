package halo

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

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
