package solvers

// Axis is the points of one axis of a grid, with what lies behind its two ends. It runs from its end 0, at coordinate 0,
// to its end 1. Behind a Dirichlet wall the first ghosts have the wall's own value, so that the wall lies one spacing from
// the nearest point; a Neumann wall lies half a spacing from it, midway between that point and the ghost that repeats it.
// A periodic axis begins at its first point, and ends where that comes again.
type Axis struct {
	Points int
	Ends   [2]WallKind
}

// UnitSpacing returns the distance between points with which the axis is 1 long.
func (a Axis) UnitSpacing() float64 {
	return 1 / (a.shift() + float64(a.Points-1) + a.Ends[1].distance(1))
}

// shift returns how many spacings the first point lies from end 0.
func (a Axis) shift() float64 { return a.Ends[0].distance(0) }
