package solvers

import "github.com/halox/halox/stencil"

// Wall is what lies behind one face of the grid.
type Wall struct {
	Kind  WallKind
	Value *stencil.Expression // of a Dirichlet wall; may use t
}

// WallKind is a kind of boundary condition.
type WallKind int

// The kinds of walls; Axis says where they lie. A Dirichlet wall lies where the first ghosts do: these have its value at
// their own place and, where that changes with time, at the time of the field that they belong to. Where the stencil
// reaches two points, ghosts of the second layer are twice the first less the owned point before it, as of a field that
// is odd about the wall. Behind a Neumann wall ghosts are the owned points as far from it as they are, so that nothing
// flows through and sums are kept. Behind a Periodic face lies the other end of the grid.
//
// Stencils of second order keep it between all of them. Those of fourth order keep it at Neumann walls, and at Dirichlet
// walls across which the second derivative of the field is 0, as it is where the wall's value is a constant. At other
// Dirichlet walls they are of second order.
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
