package boundary

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Ghosts sets the ghosts of one field behind the physical faces of the grid, any number of
// times. One thread drives a subdomain.
//
// Set sets all of them, after an exchange, whose ghosts it copies in edges and corners. Who
// overlaps the exchange takes its three parts: SetFixed once, Refresh when the boundary region
// has been swept, before messages leave, and Complete when the ghosts of neighbours have come.
type Ghosts struct {
	resources streams.Resources
	field     *halo.Field
	faces     Faces
	reach     Reach
	byRank    []*subdomain
	closed    bool
}

// subdomain is the launches of one subdomain.
type subdomain struct {
	fixed  []*streams.Kernel // values that never change
	own    []*streams.Kernel // what follows from owned points and from other faces
	edges  []*streams.Kernel // what lies beyond ghosts that come from neighbours, in edges and corners
	remote []*streams.Kernel // those of edges whose neighbours lie in other processes
	moves  []*movingFace

	unread []*streams.Kernel // edges and corners of a field whose neighbours there do not matter
}

// sides returns the faces of the grid at which an axis ends and whose condition is wanted.
func (g *Ghosts) sides(want func(c *Condition) bool) (sides []domain.Direction) {
	for _, side := range domain.Faces(g.field.Cut.Grid.Dims) {
		if !g.field.Cut.Grid.Periodic[side.Axis()] && (want == nil || want(g.faces.At(side))) {
			sides = append(sides, side)
		}
	}
	return sides
}

// sidesOf returns those of them that a subdomain lies at, and behind which the field has ghosts.
func (g *Ghosts) sidesOf(rank int, want func(c *Condition) bool) (sides []domain.Direction) {
	for _, side := range g.sides(want) {
		if !inside(g.field.Cut, rank, side) && layersAt(g.reach.Width, side) > 0 {
			sides = append(sides, side)
		}
	}
	return sides
}

// arrays returns how many arrays a subdomain has of the field.
func (g *Ghosts) arrays() int {
	count, _ := g.field.Spec.Arrays()
	return count
}

// addCopies makes one launch of some copies ready, unless there are none.
func (g *Ghosts) addCopies(to *[]*streams.Kernel, mover *pack.BoxCopier, copies []pack.Copy) error {
	if len(copies) == 0 {
		return nil
	}
	k, err := mover.Copies("boundary", copies...)
	if err != nil {
		return err
	}
	g.resources.Add(k)
	*to = append(*to, k.Kernel)
	return nil
}

// extent returns an array's points with the ghosts that are kept: those of neighbours, and behind faces those within
// the reach.
func (g *Ghosts) extent(rank int, l domain.Layout) domain.Box {
	all := l.Owned.Grow(l.Width)
	for _, side := range domain.Faces(g.field.Cut.Grid.Dims) {
		if inside(g.field.Cut, rank, side) {
			continue
		}
		if a := side.Axis(); side.Positive() {
			all.Hi[a] = l.Owned.Hi[a] + g.reach.Width.Plus[a]
		} else {
			all.Lo[a] = l.Owned.Lo[a] - g.reach.Width.Minus[a]
		}
	}
	return all
}

// swept returns an array's owned points with all ghosts of neighbours.
func (g *Ghosts) swept(rank int, l domain.Layout) domain.Box { return g.field.Cut.Grown(rank, l.Width) }

// slab returns the ghosts at a side with those of all other axes beyond them, edges and
// corners.
func (g *Ghosts) slab(rank int, l domain.Layout, side domain.Direction) domain.Box {
	full := g.extent(rank, l)
	ghosts := domain.GhostBox(l.Owned, side, g.reach.Width)
	a := side.Axis()
	full.Lo[a], full.Hi[a] = ghosts.Lo[a], ghosts.Hi[a]
	return full
}

// Layers returns how many layers of a subdomain its boundary region has for the faces alone:
// how far steps reach behind those where these change from step to step, since they are made from owned
// layers, and only the sweep of the boundary region may read them.
func (g *Ghosts) Layers(rank int) (layers domain.Radius) {
	for _, side := range g.sidesOf(rank, (*Condition).changes) {
		width := layersAt(g.reach.Width, side)
		width = max(width, g.faces.At(side).Kind.depth(width))
		if a := side.Axis(); side.Positive() {
			layers.Plus[a] = width
		} else {
			layers.Minus[a] = width
		}
	}
	return layers
}

// SetFixed queues the ghosts that never change, on a stream of the subdomain's device.
func (g *Ghosts) SetFixed(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.fixed })
}

// Refresh queues what follows from the owned points as the sweep of the boundary region left
// them, and the values of profiles at time t. step is the number of the step, by which two sets
// of values take turns.
func (g *Ghosts) Refresh(rank int, s *streams.Stream, step int64, t float64) error {
	if err := g.Move(rank, s, step, t); err != nil {
		return err
	}
	return g.Mirror(rank, s)
}

// Mirror queues what follows from owned points and from other faces alone.
func (g *Ghosts) Mirror(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.own })
}

// Move queues the values of profiles alone.
func (g *Ghosts) Move(rank int, s *streams.Stream, step int64, t float64) error {
	sub, err := g.of(rank)
	if err != nil {
		return err
	}
	for _, m := range sub.moves {
		if err := m.queue(s, step, t); err != nil {
			return err
		}
	}
	return nil
}

// Complete queues what lies beyond the ghosts of neighbours, in edges and corners.
func (g *Ghosts) Complete(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.edges })
}

// CompleteRemote queues what of Complete lies beyond the ghosts of neighbours in other processes. The rest
// the neighbours of this process store, see Stores.
func (g *Ghosts) CompleteRemote(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.remote })
}

// SetOn queues all ghosts of one subdomain as they are at time t.
func (g *Ghosts) SetOn(rank int, s *streams.Stream, step int64, t float64) error {
	if err := g.SetFixed(rank, s); err != nil {
		return err
	}
	if err := g.Refresh(rank, s, step, t); err != nil {
		return err
	}
	if err := g.Complete(rank, s); err != nil {
		return err
	}
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.unread })
}

// Set queues all ghosts of all subdomains of this process as they are at time 0, after what was
// queued before on the streams: one for every such subdomain, by rank, of its device.
func (g *Ghosts) Set(at []*streams.Stream) error {
	if g == nil {
		return errNoGhosts
	}
	if err := g.field.Placement.Suits(at); err != nil {
		return err
	}
	for rank, s := range at {
		if !g.field.Placement.IsLocal(rank) {
			continue
		}
		if err := g.SetOn(rank, s, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

var errNoGhosts = errors.New("boundary: the ghosts are nil: see New")

// of returns the launches of a subdomain, which there is, of ghosts and a field that are not closed.
func (g *Ghosts) of(rank int) (*subdomain, error) {
	if g == nil {
		return nil, errNoGhosts
	}
	if g.closed {
		return nil, fmt.Errorf("boundary: the ghosts of field %q are closed", g.field.Spec.Name)
	}
	if err := g.field.Usable(); err != nil {
		return nil, err
	}
	if rank < 0 || rank >= len(g.byRank) {
		return nil, fmt.Errorf("boundary: subdomain %d of %d of field %q", rank, len(g.byRank), g.field.Spec.Name)
	}
	if g.byRank[rank] == nil {
		return nil, fmt.Errorf("boundary: subdomain %d of field %q lies in another process", rank, g.field.Spec.Name)
	}
	return g.byRank[rank], nil
}

// launch queues some kernels of a subdomain in order.
func (g *Ghosts) launch(rank int, s *streams.Stream, kernels func(sub *subdomain) []*streams.Kernel) error {
	sub, err := g.of(rank)
	if err != nil {
		return err
	}
	for _, k := range kernels(sub) {
		if err := s.Launch(k); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what is held. Nothing queued may still use it. Closing twice is no error, nor is closing nil.
func (g *Ghosts) Close() error {
	if g == nil {
		return nil
	}
	g.closed = true
	return g.resources.Close()
}

// beyondRemote returns the parts of a box of ghosts behind faces that lie beyond ghosts of neighbours in other
// processes.
func (g *Ghosts) beyondRemote(rank int, l domain.Layout, ghosts domain.Box) (parts []domain.Box) {
	p := g.field.Placement
	for _, dir := range domain.Directions(p.Grid.Dims) {
		neighbour, ok := p.Neighbour(rank, dir)
		if !ok || p.IsLocal(neighbour) {
			continue
		}
		beyond := domain.GhostBox(l.Owned, dir, l.Width)
		for _, side := range g.sidesOf(rank, nil) {
			if dir[side.Axis()] == 0 {
				beyond = grown(beyond, side, g.reach.Width)
			}
		}
		if part := ghosts.Intersect(beyond); !part.Empty() {
			parts = append(parts, part)
		}
	}
	return parts
}

// grown adds the ghosts of one side to a box.
func grown(b domain.Box, side domain.Direction, width domain.Radius) domain.Box {
	if a := side.Axis(); side.Positive() {
		b.Hi[a] += width.Plus[a]
	} else {
		b.Lo[a] -= width.Minus[a]
	}
	return b
}
