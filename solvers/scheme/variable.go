package scheme

import (
	"errors"
	"fmt"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Variable is a field at one or several time levels. Level n, which step n computes, lies in
// field n mod Levels. A variable of one level is updated in place, or only read.
type Variable struct {
	resources streams.Resources
	Spec      halo.Spec
	Boundary  boundary.Faces // what lies behind the physical faces of the grid
	levels    []*halo.Field
}

// NewVariable allocates a variable. Its content is undefined. Close frees it.
func NewVariable(p *halo.Placement, s halo.Spec, levels int) (*Variable, error) {
	if levels < 1 || levels > maxLevels {
		return nil, fmt.Errorf("scheme: variable %q of %d time levels; 1 to %d are possible", s.Name, levels, maxLevels)
	}
	v := &Variable{Spec: s}
	for range levels {
		f, err := halo.NewField(p, s)
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
		v.resources.Add(f)
		v.levels = append(v.levels, f)
	}
	return v, nil
}

// maxLevels is how many time levels a variable may have.
const maxLevels = 16

// Levels returns how many time levels the variable has.
func (v *Variable) Levels() int { return len(v.levels) }

// Level returns the field that holds the level of a step, 0 before the first.
func (v *Variable) Level(step int64) *halo.Field { return v.levels[v.slot(step)] }

// slot returns the place of a level, which may be negative, among the fields.
func (v *Variable) slot(step int64) int {
	n := int64(len(v.levels))
	return int(((step % n) + n) % n)
}

// SetAll copies the level of step 0 to all others.
func (v *Variable) SetAll() error {
	for _, f := range v.levels[1:] {
		if err := halo.CopyTo(f, v.levels[0]); err != nil {
			return err
		}
	}
	return nil
}

// At is an access to a level of the variable, counted from the newest that is known when a step
// begins: +1 is what the step computes, 0 the newest, -1 the one before. reads is what is read
// around a point; nil the point alone.
func (v *Variable) At(level int, reads stencil.Footprint) Access {
	return Access{Variable: v, Level: level, Reads: reads, Name: v.Spec.Name}
}

// Access is what a stage reads or writes: a level of a variable.
type Access struct {
	Variable *Variable
	Level    int // +1: what the step computes
	Reads    stencil.Footprint
	Name     string // in the source of a point function
}

// Named returns the access under another name, for point functions that have several of one
// variable.
func (a Access) Named(name string) Access {
	a.Name = name
	return a
}

// field returns the field that the access means in a step.
func (a Access) field(step int64) *halo.Field { return a.Variable.Level(step - 1 + int64(a.Level)) }

// slot returns its place among the variable's fields.
func (a Access) slot(step int64) int { return a.Variable.slot(step - 1 + int64(a.Level)) }

// around reports whether other points than the point itself are read.
func (a Access) around() bool { return a.Reads.Axes() > 0 }

// real returns the type of the elements where they can be swept and measured.
func (v *Variable) real() (r kernels.Real, ok bool) {
	r = kernels.Real(v.Spec.Element)
	return r, r.Size() > 0 && max(1, v.Spec.Components) == 1
}

// Close frees what it holds. Closing twice is no error.
func (v *Variable) Close() error { return v.resources.Close() }
