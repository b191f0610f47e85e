package boundary

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// store is a store of owned points into ghosts in a direction, of a kernel that sweeps and
// stores at once.
type store struct {
	kernels.GhostStore
	dir    domain.Direction
	beyond domain.Vec // from a point to its ghost, as far as it lies behind faces of which Odd is
}

// Stores returns all that a subdomain stores into ghosts as it sweeps its boundary region: for each part of its
// messages of a plan that carries a component of this field, and for ghosts of its own behind faces that change from
// step to step, beside its own points and so many layers of ghosts of neighbours, which it sweeps too. The plan is nil
// where no message leaves. What it sends a neighbour across a face's end is also what lies behind that face there,
// since both end at it: so no store waits for another. The order of the faces is that of Refresh. ok is false where a
// face has a user kernel, which cannot be a store.
func (g *Ghosts) Stores(
	rank int, grown domain.Radius, plan *halo.Plan, field, component int,
) (stores []kernels.GhostStore, ok bool) {
	if len(g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Custom })) > 0 {
		return nil, false
	}
	owned := g.field.Cut.Subdomains[rank].Box
	region := g.field.Cut.Grown(rank, grown)
	all := []store{{GhostStore: kernels.GhostStore{Send: region, Ghost: region, To: rank}}}
	for _, m := range messagesOf(plan) {
		for _, p := range m.Parts {
			if m.From == rank && p.Field == field && p.Component == component {
				all = append(all,
					store{GhostStore: kernels.GhostStore{Send: p.Send, Ghost: p.Ghost, To: m.To}, dir: p.Dir})
			}
		}
	}
	for _, side := range g.sidesOf(rank, func(c *Condition) bool { return c.Kind == Dirichlet && c.Odd }) {
		if layersAt(g.reach.Width, side) < 2 {
			continue
		}
		for _, s := range all {
			if g.reads(s.dir, side) {
				all = append(all, s.behind(owned, side, 0, 0).reflected(side))
			}
		}
	}
	for _, side := range g.sidesOf(rank, (*Condition).mirrors) {
		for _, s := range all {
			for n := range layersAt(g.reach.Width, side) {
				if from, ok := g.faces.At(side).Kind.Source(n); ok && g.reads(s.dir, side) {
					one := s.behind(owned, side, from, n)
					one.Scales = append(one.Scales[:len(one.Scales):len(one.Scales)], g.faces.At(side).scales(n)...)
					all = append(all, one)
				}
			}
		}
	}
	for _, s := range all[1:] { // the first is the points at their own place
		stores = append(stores, s.GhostStore)
	}
	return stores, true
}

// messagesOf returns those of a plan, none where it is nil.
func messagesOf(plan *halo.Plan) []halo.Message {
	if plan == nil {
		return nil
	}
	return plan.Messages
}

// reads reports whether what lies in a direction and behind a face too is read.
func (g *Ghosts) reads(dir, side domain.Direction) bool {
	if dir[side.Axis()] != 0 {
		return false
	}
	axes := 1
	for _, d := range dir {
		axes += d * d
	}
	return axes <= 1+int(g.field.Spec.Connectivity)
}

// behind returns the store of an owned layer before a face, counted from 0, into a layer behind
// it.
func (s store) behind(owned domain.Box, side domain.Direction, before, behind int) store {
	a := side.Axis()
	from, to := owned.Lo[a]+before, owned.Lo[a]-1-behind
	if side.Positive() {
		from, to = owned.Hi[a]-1-before, owned.Hi[a]+behind
	}
	s.dir[a] = side[a]
	s.Ghost.Lo[a] += to - s.Send.Lo[a]
	s.Send.Lo[a], s.Send.Hi[a] = from, from+1
	s.Ghost.Hi[a] = s.Ghost.Lo[a] + 1
	return s
}

// reflected returns the store of a first layer, moved to the second layer behind its face and
// reflected about the first.
func (s store) reflected(side domain.Direction) store {
	a := side.Axis()
	face := s.beyond.Add(domain.Vec(side))
	s.Odd = append(s.Odd[:len(s.Odd):len(s.Odd)], face)
	s.beyond = face.Add(domain.Vec(side))
	s.Ghost.Lo[a] += side[a]
	s.Ghost.Hi[a] += side[a]
	return s
}

// Tables hold the values that the moving faces of a subdomain have at several levels, on its device: of each face those
// of its first layer of ghosts, beside owned points and beside ghosts of neighbours that are swept; x fastest, level by
// level. They are for kernels that make several steps, of fields of one array. One thread drives them.
type Tables struct {
	resources streams.Resources
	faces     []*tableFace
	levels    int
	turn      int
}

// tableFace is the values of one face.
type tableFace struct {
	*movingFace
	side   domain.Direction
	bytes  int64 // of a level
	device *streams.Memory
	host   [2]*streams.Memory // used by turns
	used   [2]*streams.Event  // the values have been copied: host may change
}

// NewTables makes room for the values at so many levels, nil for a subdomain at which no face moves. Close frees it.
func (g *Ghosts) NewTables(rank, levels int) (t *Tables, err error) {
	sub, err := g.of(rank)
	if err != nil {
		return nil, err
	}
	sides := g.sidesOf(rank, (*Condition).moves)
	if len(sides) == 0 || levels < 1 {
		return nil, nil
	}
	if len(sides) != len(sub.moves) {
		return nil, fmt.Errorf("boundary: tables of field %q, which has %d arrays", g.field.Spec.Name, g.arrays())
	}
	t = &Tables{levels: levels}
	device, size := g.field.Placement.Devices[rank], int64(g.field.Array(rank, 0).Layout.ElementSize)
	for i, side := range sides {
		f := &tableFace{movingFace: sub.moves[i], side: side, bytes: sub.moves[i].ghosts.Points() * size}
		t.faces = append(t.faces, f)
		if f.device, err = device.Alloc(f.bytes * int64(levels)); err != nil {
			return nil, t.failed(err)
		}
		t.resources.Add(f.device)
		for k := range f.host {
			if f.host[k], err = device.AllocPinned(f.bytes * int64(levels)); err != nil {
				return nil, t.failed(err)
			}
			t.resources.Add(f.host[k])
			if f.used[k], err = device.NewEvent(); err != nil {
				return nil, t.failed(err)
			}
			t.resources.Add(f.used[k])
		}
	}
	return t, nil
}

// failed frees what there is.
func (t *Tables) failed(err error) error {
	_ = t.Close() // the first error tells more
	return err
}

// At returns the ghosts of a face and where its values lie; ok is false of one that does not move.
func (t *Tables) At(side domain.Direction) (ghosts domain.Box, values streams.Span, ok bool) {
	if t == nil {
		return ghosts, values, false
	}
	for _, f := range t.faces {
		if f.side == side {
			return f.ghosts, f.device.All(), true
		}
	}
	return ghosts, values, false
}

// Queue queues the values at some levels, the first of which is that of a step: level n is at time n times the length
// of a step.
func (t *Tables) Queue(s *streams.Stream, step int64, levels int, length float64) error {
	if t == nil || levels < 1 {
		return nil
	}
	if levels > t.levels {
		return fmt.Errorf("boundary: %d levels in tables of %d", levels, t.levels)
	}
	t.turn = 1 - t.turn
	for _, f := range t.faces {
		host, used := f.host[t.turn], f.used[t.turn]
		if err := used.Sync(profileLimit); err != nil {
			return err
		}
		for n := range int64(levels) {
			if err := f.evaluateInto(host.Bytes()[n*f.bytes:(n+1)*f.bytes], float64(step+n)*length); err != nil {
				return err
			}
		}
		bytes := f.bytes * int64(levels)
		if err := s.CopyAs(streams.OtherWork, f.device.Span(0, bytes), host.Span(0, bytes)); err != nil {
			return err
		}
		if err := s.Record(used); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what is held. Nothing queued may still use it. Closing twice is no error, nor is closing nil.
func (t *Tables) Close() error {
	if t == nil {
		return nil
	}
	return t.resources.Close()
}
