package boundary

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// store is a store of owned points into ghosts in a direction, by a kernel that sweeps and stores.
type store struct {
	kernels.GhostStore
	dir    domain.Direction
	beyond domain.Vec // from a point to its ghost, as far as it lies behind faces
}

// Stores returns all stores of a subdomain into ghosts during the sweep of its boundary region: for each part
// of its messages in a plan that carries a component of this field, and for its own ghosts outside of faces
// that change from step to step, next to its own points and the given layers of swept neighbor ghosts. plan
// is nil if there are no messages. A store into a neighbor's ghosts also covers those outside of a face at
// which both subdomains end, so no store waits for another. The order of the faces is that of Refresh. ok is
// false if a face has a user kernel, which cannot be a store.
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
	for _, side := range g.sidesOf(rank, (*Condition).odd) {
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
				if from, ok := g.faces.At(side).Source(n); ok && g.reads(s.dir, side) {
					one := s.behind(owned, side, from, n)
					one.Affines = append(one.Affines[:len(one.Affines):len(one.Affines)],
						g.affines(rank, component, side, n, one.Send.Lo[side.Axis()], s.beyond)...)
					all = append(all, one)
				}
			}
		}
	}
	for _, s := range all[1:] { // the first is the points themselves
		stores = append(stores, s.GhostStore)
	}
	return stores, true
}

// messagesOf returns the messages of a plan, none for nil.
func messagesOf(plan *halo.Plan) []halo.Message {
	if plan == nil {
		return nil
	}
	return plan.Messages
}

// reads reports whether ghosts in a direction and outside of a face are read.
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

// behind returns the store of an owned layer at a face, counted from 0, into a layer outside of it.
func (s store) behind(owned domain.Box, side domain.Direction, before, behind int) store {
	a := side.Axis()
	from, to := owned.Lo[a]+before, owned.Lo[a]-1-behind
	if side.Positive() {
		from, to = owned.Hi[a]-1-before, owned.Hi[a]+behind
	}
	s.dir[a], s.beyond[a] = side[a], to-from
	s.Ghost.Lo[a] += to - s.Send.Lo[a]
	s.Send.Lo[a], s.Send.Hi[a] = from, from+1
	s.Ghost.Hi[a] = s.Ghost.Lo[a] + 1
	return s
}

// reflected returns the store of a first layer, moved to the second layer outside its face and reflected
// about the first.
func (s store) reflected(side domain.Direction) store {
	a := side.Axis()
	s.Odd = append(s.Odd[:len(s.Odd):len(s.Odd)], s.beyond)
	s.beyond = s.beyond.Add(domain.Vec(side))
	s.Ghost.Lo[a] += side[a]
	s.Ghost.Hi[a] += side[a]
	return s
}

// Tables hold the values of the time-dependent faces of a subdomain at several time levels, on its device:
// per face the values of its first layer of ghosts, next to owned points and next to swept ghosts of
// neighbors; x fastest, level by level. They are for kernels that run several steps, of fields of one array.
// One thread at a time uses them.
type Tables struct {
	resources streams.Resources
	faces     []*tableFace
	levels    int
}

// tableFace is the values of one face.
type tableFace struct {
	*movingFace
	side  domain.Direction
	bytes int64 // per level
	feed  *streams.Feed
}

// NewTables allocates tables for a number of time levels, nil for a subdomain without time-dependent faces.
// Close frees them.
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
		return nil, fmt.Errorf("boundary: tables: field %q must have 1 array, got %d", g.field.Spec.Name, g.arrays())
	}
	t = &Tables{levels: levels}
	device, size := g.field.Placement.Devices[rank], int64(g.field.Array(rank, 0).Layout.ElementSize)
	for i, side := range sides {
		f := &tableFace{movingFace: sub.moves[i], side: side, bytes: sub.moves[i].ghosts.Points() * size}
		t.faces = append(t.faces, f)
		streams.Into(&t.resources, &f.feed)(streams.NewFeed(device, f.bytes*int64(levels)))
	}
	return t, t.resources.Done()
}

// At returns the ghosts of a face and the span of their values; ok is false if the face does not vary in
// time.
func (t *Tables) At(side domain.Direction) (ghosts domain.Box, values streams.Span, ok bool) {
	if t == nil {
		return ghosts, values, false
	}
	for _, f := range t.faces {
		if f.side == side {
			return f.ghosts, f.feed.Memory().All(), true
		}
	}
	return ghosts, values, false
}

// Queue queues the values at some levels, starting with the level of a step: level n is at time n times the
// length of a step.
func (t *Tables) Queue(s *streams.Stream, step int64, levels int, length float64) error {
	if t == nil || levels < 1 {
		return nil
	}
	if levels > t.levels {
		return fmt.Errorf("boundary: tables: levels must be at most %d, got %d", t.levels, levels)
	}
	for _, f := range t.faces {
		values, err := f.feed.Next(profileLimit)
		if err != nil {
			return err
		}
		for n := range int64(levels) {
			if err := f.evaluateInto(values[n*f.bytes:(n+1)*f.bytes], float64(step+n)*length); err != nil {
				return err
			}
		}
		if err := f.feed.Queue(s, 0, f.bytes*int64(levels)); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the tables. No queued work may still use them. Close does nothing for nil or closed tables.
func (t *Tables) Close() error {
	if t == nil {
		return nil
	}
	return t.resources.Close()
}
