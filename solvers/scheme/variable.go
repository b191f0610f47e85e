package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Variable is a field at one or several time levels. Level n, which step n computes, lies in
// field n mod Levels. A variable of one level is updated in place, or only read.
//
// A variable keeps the newest level that was computed, and every run goes on from there, whatever runner made the
// steps before. At first that is 0.
type Variable struct {
	resources streams.Resources
	Spec      halo.Spec
	Boundary  boundary.Faces // what lies behind the physical faces of the grid
	levels    []*halo.Field
	newest    int64
	computed  bool // newest was computed by a run, or set
}

// NewVariable allocates a variable. Its content is undefined. Close frees it. Where a device, or the host,
// has too little memory for it, the error is streams.ErrOutOfMemory, and nothing is allocated.
func NewVariable(p *halo.Placement, s halo.Spec, levels int) (*Variable, error) {
	if levels < 1 || levels > maxLevels {
		return nil, fmt.Errorf("scheme: variable %q of %d time levels; 1 to %d are possible", s.Name, levels, maxLevels)
	}
	fields, err := halo.NewFields(p, s, levels)
	if err != nil {
		return nil, err
	}
	v := &Variable{Spec: fields[0].Spec, levels: fields} // its width is that of the widest component
	for _, f := range fields {
		v.resources.Add(f)
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

// Newest returns the newest level: that of the last step which computed the variable, or what SetNewest has said.
func (v *Variable) Newest() int64 { return v.newest }

// SetNewest says which level is the newest, where levels were filled by hand: Level(level), and as many before it as
// steps read. Steps go on from there. SetNewest(0) begins anew, with what was filled into Level(0).
func (v *Variable) SetNewest(level int64) error {
	if level < 0 {
		return fmt.Errorf("scheme: variable %q at level %d: the first is 0", v.Spec.Name, level)
	}
	v.newest, v.computed = level, true
	return nil
}

// SetAll copies the level of step 0 to all others, and begins anew with it: it is the newest.
func (v *Variable) SetAll() error {
	v.newest = 0
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

	// Components are what is read of each component around a point, where they differ; Reads is
	// then empty.
	Components []stencil.Footprint

	Sparse bool // a point function reads few of the offsets at a point, see sweep.Access
}

// Sparsely returns the access as one of which a point function reads few of the offsets at a point.
func (a Access) Sparsely() Access {
	a.Sparse = true
	return a
}

// ByComponent returns the access with the footprint of each component.
func (a Access) ByComponent(reads []stencil.Footprint) Access {
	a.Reads, a.Components = nil, reads
	return a
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

// sameField reports whether both are accesses to one field.
func (a Access) sameField(b Access) bool { return a.Variable == b.Variable && a.slot(1) == b.slot(1) }

// footprint returns what is read of any component.
func (a Access) footprint() stencil.Footprint {
	all := slices.Clone(a.Reads)
	for _, f := range a.Components {
		all = append(all, f...)
	}
	return all
}

// around reports whether other points than the point itself are read.
func (a Access) around() bool {
	for _, f := range a.Components {
		if f.Axes() > 0 {
			return true
		}
	}
	return a.Reads.Axes() > 0
}

// atPoint reports whether all components are read at the point itself.
func (a Access) atPoint() bool {
	if len(a.Components) == 0 {
		return len(a.Reads) == 0 || a.Reads.Has(domain.Vec{})
	}
	return !slices.ContainsFunc(a.Components, func(f stencil.Footprint) bool { return !f.Has(domain.Vec{}) })
}

// real returns the type of the elements where they can be swept and measured.
func (v *Variable) real() (r kernels.Real, ok bool) {
	r = kernels.Real(v.Spec.Element)
	return r, r.Size() > 0
}

// Close frees what it holds. Closing twice is no error.
func (v *Variable) Close() error { return v.resources.Close() }
