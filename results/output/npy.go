package output

import (
	"io"

	"github.com/halox/halox/results/field"
)

func init() { Register(Format{Kind: Field, Extension: ".npy", Write: writeNPY}) }

// writeNPY writes the field as a NumPy file of shape (nx,), (ny, nx) or (nz, ny, nx), in the precision of the
// run.
func writeNPY(w io.Writer, run *Run) error {
	shape := []int{run.Grid.Size[0]}
	if len(run.Spacing) != 1 {
		shape = append([]int{run.Grid.Size[1]}, shape...)
	}
	if run.Grid.Dims == 3 {
		shape = append([]int{run.Grid.Size[2]}, shape...)
	}
	e, err := field.NewEncoder(w, shape, run.Element)
	if err != nil {
		return err
	}
	if err := run.Chunks(e.Write); err != nil {
		return err
	}
	return e.Close()
}
