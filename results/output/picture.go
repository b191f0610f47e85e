package output

import (
	"fmt"
	"io"

	"github.com/halox/halox/results/plot"
)

func init() {
	for _, extension := range plot.Extensions() {
		Register(Format{Kind: Picture, Extension: extension, Write: func(w io.Writer, run *Run) error {
			return writePicture(w, extension, run)
		}})
	}
}

// writePicture draws the field, in three dimensions the plane that the config chose.
func writePicture(w io.Writer, extension string, run *Run) error {
	plane := newPlane(run.Grid, run.Axis, run.Index)
	size := plane.box.Size()
	width, height := plot.PixelsOf(
		float64(size[plane.across])*run.Spacing[plane.across], float64(size[plane.up])*run.Spacing[plane.up])
	m, err := readMosaic(plane, width, height, run.Read)
	if err != nil || w == io.Discard {
		return err
	}
	title := run.Title
	if run.Grid.Dims == 3 {
		title += fmt.Sprintf(", %s = %.4g", axisName(run.Axis), run.Coordinate(run.Axis, run.Index))
	}
	picture := plot.Picture{
		Title: title, XLabel: axisName(plane.across), YLabel: axisName(plane.up),
		NX: m.across.cells, NY: m.up.cells, Values: m.means,
	}
	picture.X0, picture.DX = m.across.axis(run.Coordinate(plane.across, 0), run.Spacing[plane.across])
	picture.Y0, picture.DY = m.up.axis(run.Coordinate(plane.up, 0), run.Spacing[plane.up])
	return plot.Encode(w, extension, picture)
}

// axisName returns "x", "y" or "z".
func axisName(axis int) string { return "xyz"[axis : axis+1] }
