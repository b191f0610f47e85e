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
