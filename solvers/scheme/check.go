package scheme

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
)

// maxPeriod is how many steps a phase may have to itself: launches are made ready for each.
const maxPeriod = 32

// Check returns an error unless the parts of the step fit together.
func (s *Step) Check() error {
	if s == nil || len(s.Stages) == 0 {
		return fmt.Errorf("scheme: a step without stages")
	}
	for i := range s.Stages {
		if err := s.Stages[i].check(); err != nil {
			return fmt.Errorf("scheme: stage %d %q: %w", i, s.Stages[i].title(), err)
		}
	}
	p := s.placement()
	if err := checkOwners(p); err != nil {
		return err
	}
	for _, v := range s.variables() {
		if v.levels[0].Placement != p {
			return fmt.Errorf("scheme: variable %q lies on another placement than the others", v.Spec.Name)
		}
	}
	if n := s.period(); n > maxPeriod {
		return fmt.Errorf("scheme: the numbers of levels of the variables and Step.Group (%d) have the least common multiple %d; %d is possible", s.group(), n, maxPeriod)
	}
	for _, v := range s.Measured {
		if v == nil {
			return errors.New("scheme: no norms of no variable (nil)")
		}
		if _, ok := v.real(); !ok || !slices.Contains(s.variables(), v) || v.Levels() < 2 && !s.measuredInPlace(v) {
			return fmt.Errorf("scheme: no norms of variable %q: they are taken of float32 or float64 that a stage writes, with two levels or more, or in place by a point function", v.Spec.Name)
		}
	}
	return s.checkGroup()
}

// measuredInPlace reports whether a point function updates the variable in place.
func (s *Step) measuredInPlace(v *Variable) bool {
	for i := range s.Stages {
		st := &s.Stages[i]
		if st.Point == nil {
			continue
		}
		for _, a := range st.sweepAccesses([]*Variable{v}) {
			if a.Before != "" {
				return true
			}
		}
	}
	return false
}

// check returns an error unless the accesses of the stage can be.
func (st *Stage) check() error {
	if len(st.Writes) == 0 {
		return fmt.Errorf("it writes nothing")
	}
	for _, a := range append(slices.Clone(st.Reads), st.Writes...) {
		if a.Variable == nil || len(a.Variable.levels) == 0 {
			return fmt.Errorf("an access to no variable")
		}
		if st.Point != nil && a.Variable.Spec.IsTyped() {
			return fmt.Errorf("a sweep of variable %q, whose values are of type %v: kernels of its own can have them", a.Name, a.Variable.Spec.Type)
		}
		if a.Level > 1 || a.Level < 1-a.Variable.Levels() {
			return fmt.Errorf("variable %q of %d levels at level %+d", a.Name, a.Variable.Levels(), a.Level)
		}
		if r, w := a.footprint().Radius(), a.Variable.Spec.Width; !within(r, w) {
			return fmt.Errorf("%q is read %v around a point and has ghosts %v", a.Name, r, w)
		}
		if err := st.checkWidths(a); err != nil {
			return err
		}
		if a.footprint().Axes() > 1+int(a.Variable.Spec.Connectivity) {
			return fmt.Errorf("%q is read in edges or corners, where it has no ghosts", a.Name)
		}
	}
	for i, w := range st.Writes {
		if w.around() {
			return fmt.Errorf("%q is written around a point", w.Name)
		}
		if n := w.Variable.Levels(); n > 1 && w.Level != 1 {
			return fmt.Errorf("%q, a variable of %d levels, is written at level %+d: a step computes level +1, and leaves those before it", w.Name, n, w.Level)
		}
		if slices.ContainsFunc(st.Writes[:i], w.sameField) {
			return fmt.Errorf("%q is written twice, by accesses to one field", w.Name)
		}
		if err := st.checkInPlace(w); err != nil {
			return err
		}
	}
	ways := 0
	for _, has := range []bool{st.Point != nil, st.Kernels != nil} {
		if has {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("it has either a point function or kernels")
	}
	return st.checkPoint()
}

// checkInPlace returns an error unless what is read of a field that the stage writes is the point itself, and a point
// function has one access to it.
func (st *Stage) checkInPlace(w Access) error {
	reads := 0
	for _, r := range st.Reads {
		if !w.sameField(r) {
			continue
		}
		reads++
		switch {
		case r.around():
			return fmt.Errorf("%q is written in place and read around a point: give the variable one level more", w.Name)
		case st.Point != nil && r.Name != w.Name:
			return fmt.Errorf("%q is updated in place, and read as %q: give both accesses one name", w.Name, r.Name)
		case st.Point != nil && reads > 1:
			return fmt.Errorf("%q is updated in place, and read twice: one access is enough", w.Name)
		}
	}
	return nil
}

// checkWidths returns an error if a component that has ghosts of its own is read farther than
// these reach: nobody sends what lies there. What kernels of the caller's read of all components
// together is for the caller to know.
func (st *Stage) checkWidths(a Access) error {
	for c, w := range a.Variable.Spec.Widths {
		reads := a.Reads
		switch {
		case c < len(a.Components):
			reads = a.Components[c]
		case st.Kernels != nil:
			continue
		}
		if r := reads.Radius(); !within(r, w) {
			return fmt.Errorf("component %d of %q is read %v around a point and has ghosts %v", c, a.Name, r, w)
		}
	}
	return nil
}

// within reports whether a radius is no larger than the width of ghosts, on each side.
func within(r, w domain.Radius) bool {
	for a := range 3 {
		if r.Minus[a] > w.Minus[a] || r.Plus[a] > w.Plus[a] {
			return false
		}
	}
	return true
}

// checkPoint returns an error unless the accesses suit a point function.
func (st *Stage) checkPoint() error {
	if st.Point == nil {
		if st.Parameters != nil {
			return errors.New("parameters without a point function")
		}
		return nil
	}
	if dims := st.Writes[0].Variable.levels[0].Placement.Grid.Dims; st.Point.Dims != dims {
		return fmt.Errorf("point function %q has %d dimensions, and the grid %d: set Point.Dims", st.Point.Name, st.Point.Dims, dims)
	}
	for _, a := range st.pointAccesses() {
		if s := a.Variable.Spec; s.Components > 1 && !s.SoA {
			return fmt.Errorf("the components of %q lie together: a point function has each in an array of its own (SoA)", a.Name)
		}
	}
	return nil
}
