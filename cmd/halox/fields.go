package main

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/results"
	"github.com/halox/halox/stencil"
)

// writeFields writes the picture and the field that the config wants, and adds
// the distance from the exact solution to the record.
func (j *job) writeFields(r *record) error {
	if j.config.Exact != "" {
		if err := j.compare(r); err != nil {
			return err
		}
	}
	if name := j.config.Output.Picture; name != "" {
		if err := j.writePicture(name, r.Iterations); err != nil {
			return err
		}
	}
	if name := j.config.Output.Field; name != "" {
		return j.writeField(name)
	}
	return nil
}

// compare adds the errors to the record.
func (j *job) compare(r *record) error {
	exact, err := stencil.Parse(j.config.Exact)
	if err != nil {
		return err
	}
	d, err := j.solver.Deviation(exact)
	r.Error = &results.ErrorNorms{L2: results.Number(d.L2), Max: results.Number(d.Max)}
	return err
}

// writePicture draws the field, or in three dimensions a plane of it.
func (j *job) writePicture(name string, iterations int) error {
	grid := j.problem.Grid
	box := grid.Box()
	across, up := 0, 1
	title := fmt.Sprintf("%s, step %d", j.config.Solver, iterations)
	if grid.Dims == 3 {
		axis, index := j.config.Plane()
		box.Lo[axis], box.Hi[axis] = index, index+1
		across, up = (axis+1)%3, (axis+2)%3
		if across > up {
			across, up = up, across
		}
		title += fmt.Sprintf(", %c = %.4g", "xyz"[axis], j.coordinate(axis, index))
	}
	values := make([]float64, box.Points())
	if err := j.solver.Read(values, box); err != nil {
		return err
	}
	return results.WritePicture(name, results.Picture{
		Title: title, XLabel: "xyz"[across : across+1], YLabel: "xyz"[up : up+1],
		NX: grid.Size[across], NY: grid.Size[up], Values: values,
		X0: j.coordinate(across, 0), Y0: j.coordinate(up, 0),
		DX: j.problem.Spacing[across], DY: j.problem.Spacing[up],
	})
}

// coordinate returns where the points of an index lie on an axis.
func (j *job) coordinate(axis, index int) float64 {
	if !j.problem.Grid.Periodic[axis] {
		index++
	}
	return float64(index) * j.problem.Spacing[axis]
}

// chunkPoints is how much of a field is read at once.
const chunkPoints = 1 << 22

// writeField writes all owned points.
func (j *job) writeField(name string) error {
	grid := j.problem.Grid
	shape := []int{grid.Size[1], grid.Size[0]}
	if grid.Dims == 3 {
		shape = append([]int{grid.Size[2]}, shape...)
	}
	dtype := results.Float64
	if j.config.Precision == "float32" {
		dtype = results.Float32
	}
	w, err := results.NewFieldWriter(name, shape, dtype)
	if err != nil {
		return err
	}
	defer w.Abort()
	err = grid.EachChunk(chunkPoints, func(box domain.Box) error {
		values := make([]float64, box.Points())
		if err := j.solver.Read(values, box); err != nil {
			return err
		}
		return w.Write(values)
	})
	if err != nil {
		return err
	}
	return w.Close()
}
