package boundary

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Ghosts sets the ghosts of one field outside the physical boundaries of the grid, any number of times. One
// thread at a time uses a subdomain.
//
// Set sets all of them after an exchange, whose ghosts it copies in edges and corners. To overlap it with the
// exchange, call its three parts: SetFixed once, Refresh after the sweep of the boundary region and before
// messages are sent, and Complete when the ghosts of neighbors have arrived.
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
	fixed  []*streams.Kernel // constant values
	own    []*streams.Kernel // ghosts that depend on owned points and other faces
	edges  []*streams.Kernel // ghosts in edges and corners that depend on ghosts of neighbors
	remote []*streams.Kernel // the edges whose neighbors are in other processes
	moves  []*movingFace
	given  map[domain.Direction][]kernels.Array // by component, of faces that make ghosts of points and values

	unread []*streams.Kernel // edges and corners of a field that has no neighbors there
}

// sides returns the faces of the grid at which an axis ends and whose condition satisfies want.
func (g *Ghosts) sides(want func(c *Condition) bool) (sides []domain.Direction) {
	for _, side := range domain.Faces(g.field.Cut.Grid.Dims) {
		if !g.field.Cut.Grid.Periodic[side.Axis()] && (want == nil || want(g.faces.At(side))) {
			sides = append(sides, side)
		}
	}
	return sides
}

// sidesOf returns those of them that a subdomain touches and outside of which the field has ghosts.
func (g *Ghosts) sidesOf(rank int, want func(c *Condition) bool) (sides []domain.Direction) {
	for _, side := range g.sides(want) {
		if !inside(g.field.Cut, rank, side) && layersAt(g.reach.Width, side) > 0 {
			sides = append(sides, side)
		}
	}
	return sides
}

// arrays returns the number of arrays of the field in a subdomain.
func (g *Ghosts) arrays() int {
	count, _ := g.field.Spec.Arrays()
	return count
}

// addCopies prepares one launch for some copies, unless there are none.
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

// extent returns an array's points with the ghosts that are set: those of neighbors, and outside of faces
// those within the reach.
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

// swept returns an array's owned points with all ghosts of neighbors.
func (g *Ghosts) swept(rank int, l domain.Layout) domain.Box { return g.field.Cut.Grown(rank, l.Width) }

// slab returns the ghosts at a side, including edges and corners.
func (g *Ghosts) slab(rank int, l domain.Layout, side domain.Direction) domain.Box {
	full := g.extent(rank, l)
	ghosts := domain.GhostBox(l.Owned, side, g.reach.Width)
	a := side.Axis()
	full.Lo[a], full.Hi[a] = ghosts.Lo[a], ghosts.Hi[a]
	return full
}

// Layers returns how many layers the boundary region of a subdomain needs at the faces: as many as steps read
// outside of faces whose ghosts change from step to step. These depend on owned layers, and only the sweep of
// the boundary region may read them.
func (g *Ghosts) Layers(rank int) (layers domain.Radius) {
	for _, side := range g.sidesOf(rank, (*Condition).changes) {
		width := layersAt(g.reach.Width, side)
		width = max(width, g.faces.At(side).depth(width))
		if a := side.Axis(); side.Positive() {
			layers.Plus[a] = width
		} else {
			layers.Minus[a] = width
		}
	}
	return layers
}

// Follows reports whether ghosts of a subdomain depend on owned points, on ghosts of neighbors or on the time:
// whether Refresh or Complete queue anything.
func (g *Ghosts) Follows(rank int) bool {
	sub, err := g.of(rank)
	return err == nil && len(sub.own)+len(sub.edges)+len(sub.moves) > 0
}

// SetFixed queues the constant ghosts, on a stream of the subdomain's device.
func (g *Ghosts) SetFixed(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.fixed })
}

// Refresh queues the ghosts that depend on owned points as the sweep of the boundary region left them, and
// the values of profiles at time t. step is the number of the step; it selects one of two buffers for the
// values.
func (g *Ghosts) Refresh(rank int, s *streams.Stream, step int64, t float64) error {
	if err := g.Move(rank, s, step, t); err != nil {
		return err
	}
	return g.Mirror(rank, s)
}

// Mirror queues only the ghosts that depend on owned points and on other faces.
func (g *Ghosts) Mirror(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.own })
}

// Move queues only the values of profiles.
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

// Complete queues the ghosts in edges and corners that depend on ghosts of neighbors.
func (g *Ghosts) Complete(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.edges })
}

// CompleteRemote queues the part of Complete that depends on ghosts of neighbors in other processes.
// Neighbors in this process store the rest, see Stores.
func (g *Ghosts) CompleteRemote(rank int, s *streams.Stream) error {
	return g.launch(rank, s, func(sub *subdomain) []*streams.Kernel { return sub.remote })
}

// SetOn queues all ghosts of one subdomain at time t.
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

// Set queues all ghosts of all subdomains of this process at time 0, after earlier work on the streams: one
// stream per subdomain, by rank, on its device.
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

// of returns the launches of a subdomain, or an error if the ghosts or the field are closed or there is no
// such subdomain.
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
		return nil, fmt.Errorf(
			"boundary: the subdomain of field %q must be less than %d, got %d", g.field.Spec.Name, len(g.byRank), rank)
	}
	if g.byRank[rank] == nil {
		return nil, fmt.Errorf("boundary: subdomain %d of field %q belongs to another process", rank, g.field.Spec.Name)
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

// Close frees the ghosts. No queued work may still use them. Close does nothing for nil or closed ghosts.
func (g *Ghosts) Close() error {
	if g == nil {
		return nil
	}
	g.closed = true
	return g.resources.Close()
}

// beyondRemote returns the parts of a box of ghosts outside of faces that depend on ghosts of neighbors in
// other processes.
func (g *Ghosts) beyondRemote(rank int, l domain.Layout, ghosts domain.Box) (parts []domain.Box) {
	p := g.field.Placement
	for _, dir := range domain.Directions(p.Grid.Dims) {
		neighbour, ok := p.Neighbor(rank, dir)
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
