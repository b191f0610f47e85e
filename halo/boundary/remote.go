package boundary

import "github.com/halox/halox/domain"

// beyondRemote returns the parts of a box of ghosts behind faces that lie beyond ghosts of neighbours in other processes.
func (g *Ghosts) beyondRemote(rank int, l domain.Layout, ghosts domain.Box) (parts []domain.Box) {
	p := g.field.Placement
	if p.Processes.IsAlone() {
		return nil
	}
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
