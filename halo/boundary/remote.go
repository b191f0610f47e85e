package boundary

import "github.com/halox/halox/domain"

// beyondRemote returns the parts of a box of ghosts behind faces that lie beyond ghosts of neighbours in other processes.
func (r *refresher) beyondRemote(ghosts domain.Box) (parts []domain.Box) {
	p := r.ghosts.field.Placement
	if p.Processes == nil {
		return nil
	}
	l := r.array.Layout
	for _, dir := range domain.Directions(p.Grid.Dims) {
		neighbour, ok := p.Neighbour(r.rank, dir)
		if !ok || p.IsLocal(neighbour) {
			continue
		}
		beyond := domain.GhostBox(l.Owned, dir, l.Width)
		for _, side := range r.ghosts.sidesOf(r.rank, nil) {
			if dir[side.Axis()] == 0 {
				beyond = grown(beyond, side, r.ghosts.reach.Width)
			}
		}
		if part := ghosts.Intersect(beyond); !part.Empty() {
			parts = append(parts, part)
		}
	}
	return parts
}
