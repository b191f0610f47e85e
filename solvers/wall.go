package solvers

import "github.com/halox/halox/stencil"

// Wall is what lies behind one face of the grid.
type Wall struct {
	Kind  WallKind
	Value *stencil.Expression // of a Dirichlet wall; may use t
}

// WallKind is a kind of boundary condition.
type WallKind int

// The kinds of walls. Behind a Dirichlet wall the ghosts have the wall's value
// at their own place and, where that changes with time, at the time of the field
// that they belong to; where the stencil reaches two points, ghosts of the second layer
// are twice the first less the owned point before it, as of a field that is odd about the
// wall. Behind a Neumann wall ghosts are the owned points as far from it as they are, so
// that nothing flows through and sums are kept. Behind a Periodic
// face lies the other end of the grid.
//
// In edges and corners, periodic axes are followed first, then Neumann ones;
// of several Dirichlet walls that of the last axis counts.
const (
	Dirichlet WallKind = iota
	Neumann
	Periodic
)

// moves reports whether the wall's value changes with time.
func (w Wall) moves() bool { return w.Kind == Dirichlet && w.Value.Uses("t") }

// distance returns how many spacings an end of an axis lies beyond the nearest point.
func (k WallKind) distance(end int) float64 {
	switch k {
	case Neumann:
		return 0.5
	case Periodic:
		return float64(end)
	}
	return 1
}
