package halo

import (
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// ends returns the arrays that a part leaves and arrives in.
func (x *Exchanger) ends(m Message, p Part) (src, dst kernels.Array) {
	f := x.fields[p.Field]
	return f.Array(m.From, p.Component), f.Array(m.To, p.Component)
}

// buffer allocates on the device of a rank.
func (x *Exchanger) buffer(rank int, bytes int64) (*streams.Memory, error) {
	b, err := x.plan.Placement.Devices[rank].Alloc(bytes)
	if err != nil {
		return nil, err
	}
	x.resources.Add(b)
	return b, nil
}

// copies returns one copy for each of some parts of a message.
func (x *Exchanger) copies(m Message, parts []Part, one func(src, dst kernels.Array, p Part) pack.Copy) (all []pack.Copy) {
	for _, p := range parts {
		src, dst := x.ends(m, p)
		all = append(all, one(src, dst, p))
	}
	return all
}

// ready makes the launches: one of all copies, then those that are apart.
func (x *Exchanger) ready(e *end) error {
	e.queue = slices.Clone(e.apart)
	if len(e.copies) == 0 {
		return nil
	}
	k, err := x.copiers[x.plan.Placement.Devices[e.rank]].CopiesAs(e.work, e.name, e.copies...)
	if err != nil {
		return err
	}
	x.resources.Add(k)
	e.queue = slices.Insert(e.queue, 0, operation(launch{k.Kernel}))
	return nil
}
