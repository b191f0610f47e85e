package output

import (
	"encoding/binary"
	"io"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/vtk"
)

func init() { Register(Format{Kind: Field, Extension: ".vti", Write: writeVTI}) }

// writeVTI writes the field as an image of VTK, with the coordinates of the run, in its precision.
func writeVTI(w io.Writer, run *Run) error {
	axes := len(run.Spacing)
	u := vtk.Array{Name: run.Field.Name, Element: run.Element, Unit: run.Field.Unit}
	m := vtk.Image{Size: run.Grid.Size[:axes], Spacing: run.Spacing, Arrays: []vtk.Array{u}}
	for a := range axes {
		m.Origin = append(m.Origin, run.Coordinate(a, 0))
	}
	e, err := vtk.NewEncoder(w, m, run.Grid.Box())
	if err != nil {
		return err
	}
	var data []byte
	err = run.Chunks(func(values []float64) (err error) {
		var numbers any = values
		if run.Element == domain.Float32 {
			narrow := make([]float32, len(values))
			for i, v := range values {
				narrow[i] = float32(v)
			}
			numbers = narrow
		}
		if data, err = binary.Append(data[:0], binary.LittleEndian, numbers); err == nil {
			_, err = e.Write(data)
		}
		return err
	})
	if err != nil {
		return err
	}
	return e.Close()
}
