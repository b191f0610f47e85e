package sweep

// Coordinates say where points lie: index i of an axis at (i + Shift) * Spacing. The end 0 of the axis is at 0 with shift
// 1 at a Dirichlet face, 0.5 at a Neumann face, and 0 where the axis is periodic.
type Coordinates struct{ Shift, Spacing [3]float64 }

// Moment says which time step a sweep is of. Steps are counted from 1, and Length is that of each;
// the first begins at the time Start.
type Moment struct {
	Step          int64
	Start, Length float64
}

// time returns the time at which the step begins, computed as kernels do.
func (m Moment) time() float64 { return m.Start + float64(float64(m.Step-1)*m.Length) }

// frameNumbers are those of struct Frame of site.cuh before the parameters.
const frameNumbers = 3 + 6
