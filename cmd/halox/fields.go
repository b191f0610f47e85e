package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/field"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/stencil"
)

// writeFields writes the field and the picture that the config wants, and adds
// the distance from the exact solution to the record. What fails keeps nothing
// else from being written.
func (j *solverRun) writeFields(ctx context.Context, r *record) error {
	var errs []error
	keep := j.keeper(r.clone(), nil)
	if name := j.config.Output.Field; name != "" {
		errs = append(errs, j.writeField(ctx, name, keep))
		if p := j.place.Processes; !p.IsAlone() && p.Err() != nil {
			return errors.Join(errs...) // nothing else comes from the others
		}
	}
	during(ctx, "reading what came out", keep)
	if j.config.Exact != "" {
		errs = append(errs, j.compare(r))
	}
	if name := j.config.Output.Picture; name != "" {
		during(ctx, "drawing "+name, keep)
		errs = append(errs, j.writePicture(name, r.run.Iterations))
	}
	return errors.Join(errs...)
}

// compare adds the errors to the record.
func (j *solverRun) compare(r *record) error {
	exact, err := stencil.Parse(j.config.Exact)
	if err != nil {
		return err
	}
	d, err := j.solver.Deviation(context.Background(), exact) // also of a run that was interrupted
	if err != nil {
		return err
	}
	r.run.Error = &results.ErrorNorms{L2: results.Number(d.L2), Max: results.Number(d.Max)}
	return nil
}

// writePicture draws the field, or in three dimensions a plane of it.
func (j *solverRun) writePicture(name string, iterations int) error {
	axis, index := j.config.Plane()
	plane := newPlane(j.problem.Grid, axis, index)
	m, err := readMosaic(plane, pictureSide, j.gather)
	if err != nil || !j.writes() {
		return err
	}
	title := fmt.Sprintf("%s, step %d", j.config.Solver, iterations)
	if j.problem.Grid.Dims == 3 {
		title += fmt.Sprintf(", %s = %.4g", axisName(axis), j.problem.Coordinate(axis, index))
	}
	picture := plot.Picture{
		Title: title, XLabel: axisName(plane.across), YLabel: axisName(plane.up),
		NX: m.across.cells, NY: m.up.cells, Values: m.means,
	}
	picture.X0, picture.DX = m.across.axis(j.problem.Coordinate(plane.across, 0), j.problem.Spacing[plane.across])
	picture.Y0, picture.DY = m.up.axis(j.problem.Coordinate(plane.up, 0), j.problem.Spacing[plane.up])
	return plot.WritePicture(name, picture)
}

// gather reads points of all processes into those of rank 0, see solvers.Solver.Gather.
func (j *solverRun) gather(dst []float64, box domain.Box) error {
	return j.solver.Gather(context.Background(), dst, box) // also of a run that was interrupted
}

// giveField takes part in reading all of the field, where another process, or none, writes it.
func (j *solverRun) giveField() error {
	if j.place.Processes.IsAlone() {
		return nil
	}
	return j.problem.Grid.EachChunk(chunkPoints, func(box domain.Box) error {
		var values []float64
		if j.writes() {
			values = make([]float64, box.Points())
		}
		return j.gather(values, box)
	})
}

// tell has other processes, where there are some, told of an error of this one: they wait for it no longer.
func (j *solverRun) tell(err error) error {
	if err != nil && !j.place.Processes.IsAlone() {
		return j.place.Processes.Fail(err)
	}
	return err
}

// axisName returns the name of an axis.
func axisName(axis int) string { return "xyz"[axis : axis+1] }

// writeField writes all owned points. Ended by force it leaves nothing of the file, and what keep
// keeps.
func (j *solverRun) writeField(ctx context.Context, name string, keep func() string) error {
	grid := j.problem.Grid
	shape := []int{grid.Size[1], grid.Size[0]}
	if grid.Dims == 3 {
		shape = append([]int{grid.Size[2]}, shape...)
	}
	dtype := field.Float64
	if j.config.Precision == "float32" {
		dtype = field.Float32
	}
	if !j.writes() {
		return j.giveField()
	}
	w, err := field.NewWriter(name, shape, dtype)
	if err != nil {
		return errors.Join(err, j.giveField())
	}
	defer w.Abort()
	during(ctx, "writing "+name, func() string {
		_ = w.Abort()
		return keep()
	})
	err = grid.EachChunk(chunkPoints, func(box domain.Box) error {
		values := make([]float64, box.Points())
		if err := j.gather(values, box); err != nil {
			return err
		}
		return j.tell(w.Write(values))
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// pictureSide is the most cells that a side of a picture is made of; it has
// fewer pixels.
const pictureSide = 2048

// chunkPoints is how much of a field is read at once.
const chunkPoints = 1 << 22

// plane is what a picture shows: one layer of the grid across an axis. A grid
// of two dimensions is one layer across z.
type plane struct {
	box        domain.Box // its points
	across, up int        // the axes of the picture
}

func newPlane(g domain.Grid, axis, index int) plane {
	p := plane{box: g.Box(), across: 0, up: 1}
	p.box.Lo[axis], p.box.Hi[axis] = index, index+1
	switch axis {
	case 0:
		p.across, p.up = 1, 2
	case 1:
		p.up = 2
	}
	return p
}

// lines returns the points of the lines [from, to), counted upwards.
func (p plane) lines(from, to int) domain.Box {
	box := p.box
	box.Lo[p.up], box.Hi[p.up] = from, to
	return box
}

// mosaic is a plane in cells, each the mean of a block of points. All blocks
// together cover the plane, and no two of them differ by more than one point
// a side.
type mosaic struct {
	across, up tiling
	means      []float64 // the lowest row first
}

// readMosaic averages the plane down to at most side cells a side. It reads a
// part of the plane at a time, as solvers.Solver.Read does.
func readMosaic(p plane, side int, read func(dst []float64, box domain.Box) error) (*mosaic, error) {
	size := p.box.Size()
	m := &mosaic{across: newTiling(size[p.across], side), up: newTiling(size[p.up], side)}
	m.means = make([]float64, m.across.cells*m.up.cells)
	nx, ny := m.across.points, m.up.points
	lines := max(1, chunkPoints/nx)
	values := make([]float64, nx*min(lines, ny))
	for y := 0; y < ny; y += lines {
		end := min(y+lines, ny)
		if err := read(values[:nx*(end-y)], p.lines(y, end)); err != nil {
			return nil, err
		}
		for line := y; line < end; line++ {
			m.add(line, values[nx*(line-y):][:nx])
		}
	}
	return m, nil
}

// add adds a line of points to the means of the cells that it runs through.
// Each point is scaled before, so that the sum cannot overflow.
func (m *mosaic) add(line int, values []float64) {
	row := m.up.cell(line)
	bottom, top := m.up.block(row)
	means := m.means[row*m.across.cells:][:m.across.cells]
	for i := range means {
		left, right := m.across.block(i)
		scale := 1 / float64((right-left)*(top-bottom))
		for _, v := range values[left:right] {
			means[i] += v * scale
		}
	}
}

// tiling shares out the points of an axis among cells.
type tiling struct{ points, cells int }

func newTiling(points, most int) tiling { return tiling{points, min(points, most)} }

// block returns the points [lo, hi) of a cell.
func (t tiling) block(cell int) (lo, hi int) {
	return cell * t.points / t.cells, (cell + 1) * t.points / t.cells
}

// cell returns the cell whose block has the point.
func (t tiling) cell(point int) int { return ((point+1)*t.cells - 1) / t.points }

// axis returns where the first cell lies, and how far apart cells are, where
// that of the points is known. The cells reach as far as the points' own do.
func (t tiling) axis(first, spacing float64) (origin, step float64) {
	step = spacing * float64(t.points) / float64(t.cells)
	return first + (step-spacing)/2, step
}
