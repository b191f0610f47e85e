package kernels

import "github.com/halox/halox/domain"

// GhostStore says where boundary points go beside their own place: into the ghosts of a
// rank, maybe the same one. For ghosts behind walls that fields are odd about, Odd says
// where, from each point, the value of such a wall lies, a ghost of this rank that no store
// writes: v becomes 2*wall - v, for one wall after the other.
type GhostStore struct {
	Send, Ghost domain.Box // of equal size, owned by this rank and ghosts of the other
	To          int        // rank
	Odd         []domain.Vec
}
