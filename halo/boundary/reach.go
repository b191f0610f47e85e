package boundary

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
)

// Reach is how far a step reads a field behind faces, and beyond how many of them at once. A field whose ghosts of
// neighbours are swept, as where several steps go between two exchanges, has more of these than a step reads.
type Reach struct {
	Width        domain.Radius
	Connectivity halo.Connectivity
}

// reachOf returns the reach that uses all ghosts of a field.
func reachOf(f *halo.Field) Reach { return Reach{f.Spec.Width, f.Spec.Connectivity} }

// extent returns an array's points with the ghosts that are kept: those of neighbours, and behind faces those within the reach.
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
