package scheme

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
)

// A group is the steps between two exchanges, see Step.Group. Steps whose number is a multiple of the group's length
// end one, so that a run may begin and end within a group: owned points are whole after every step, and a run begins
// with an exchange. Every stage of a group but the last sweeps its subdomain and as many layers towards neighbours as
// all stages after it read. The last sweeps owned points, and what the next group reads is exchanged after it.

// ends reports whether a step, or a phase, ends its group.
func (s *Step) ends(n int64) bool { return n%int64(s.group()) == 0 }

// reach returns how far a step reads: the sum over its stages of how far each reads around a point.
func (s *Step) reach() (all domain.Radius) {
	for _, st := range s.Stages {
		all = farther(all, radiusOf(st.Reads), 1)
	}
	return all
}

// readRadius returns how far stages read a variable around a point.
func (s *Step) readRadius(v *Variable) domain.Radius { return radiusOf(s.reads(v)) }

// radiusOf returns how far accesses reach around a point.
func radiusOf(reads []Access) (all domain.Radius) {
	for _, a := range reads {
		all = all.Max(a.footprint().Radius())
	}
	return all
}

// growth returns how many layers towards neighbours a stage of step n, or of its phase, sweeps: what the rest of the
// group reads.
func (s *Step) growth(n int64, stage int) (layers domain.Radius) {
	k := s.group()
	if k == 1 {
		return layers
	}
	left := (k - int(n%int64(k))) % k
	layers = farther(layers, s.reach(), left)
	for _, st := range s.Stages[stage+1:] {
		layers = farther(layers, radiusOf(st.Reads), 1)
	}
	return layers
}

// grows reports whether a stage of step n is one after which its group goes on without an exchange.
func (s *Step) grows(n int64, stage int) bool {
	return s.group() > 1 && (!s.ends(n) || stage < len(s.Stages)-1)
}

// isolated reports whether kernels that store into ghosts of neighbours need not know of a stage of step n: the first
// of a group waits for what neighbours have stored, the last stores, and the one before it says that ghosts have been
// read.
func (s *Step) isolated(n int64, stage int) bool {
	k, stages := s.group(), len(s.Stages)
	place := int((n-1)%int64(k)+int64(k))%k*stages + stage
	return k > 1 && 0 < place && place < k*stages-2
}

// checkGroup returns an error unless steps can be run in groups.
func (s *Step) checkGroup() error {
	if s.Group < 0 {
		return fmt.Errorf("scheme: Step.Group, the steps between two exchanges, must be 0 or more, got %d", s.Group)
	}
	if s.group() == 1 {
		return nil
	}
	for _, v := range s.variables() {
		if err := s.checkWide(v); err != nil {
			return fmt.Errorf("scheme: %d steps between two exchanges: variable %q %w", s.Group, v.Spec.Name, err)
		}
	}
	for i, st := range s.Stages {
		for axis, periodic := range s.placement().Grid.Periodic {
			if periodic && st.Point != nil && st.Point.Placed(axis) {
				return fmt.Errorf("scheme: %d steps between two exchanges: stage %d %q asks where a point lies along "+
					"%c, which is periodic: ghosts across its ends lie elsewhere than the points that they stand for",
					s.Group, i, st.title(), "xyz"[axis])
			}
		}
	}
	return nil
}

// checkWide returns an error unless the ghosts of a variable can be swept for the steps of a group.
func (s *Step) checkWide(v *Variable) error {
	p, need := s.placement(), farther(domain.Radius{}, s.reach(), s.group())
	for _, side := range domain.Faces(p.Grid.Dims) {
		if a := side.Axis(); p.Parts[a] == 1 && !p.Grid.Periodic[a] {
			continue
		}
		if have, want := at(v.Spec.Width, side), at(need, side); have < want {
			return fmt.Errorf("has %d layers of ghosts in %v, and %d times what a step reaches is %d: "+
				"see halo.WideHalo", have, side, s.group(), want)
		}
	}
	switch {
	case v.Spec.Widths != nil:
		return errors.New("has components with different ghosts, and ghosts of all are swept")
	case v.Spec.Stagger != [3]bool{}:
		return errors.New("is staggered: its subdomains have other points than those that are swept")
	case int(v.Spec.Connectivity) < p.Grid.Dims-1:
		return errors.New("has no ghosts in edges and corners, which are swept: see halo.WideHalo")
	}
	return nil
}

// newGhosts makes the ghosts of a field of a variable behind physical faces ready, as far as a step reads them:
// profiles, reflections and mirrors need not suit wider ones. User kernels set all ghosts.
func (s *Step) newGhosts(c *kernels.Compiler, v *Variable, f *halo.Field) (*boundary.Ghosts, error) {
	custom := slices.ContainsFunc(v.Boundary[:], func(b boundary.Condition) bool { return b.Kind == boundary.Custom })
	if s.group() == 1 && custom {
		return boundary.New(c, f, v.Boundary)
	}
	reach := boundary.Reach{Width: s.readRadius(v)}
	for _, a := range s.reads(v) {
		reach.Connectivity = max(reach.Connectivity, halo.Connectivity(a.footprint().Axes()-1))
	}
	return boundary.NewWithin(c, f, v.Boundary, reach)
}

// depthAt returns where a radius keeps the depth at a side.
func depthAt(r *domain.Radius, side domain.Direction) *int {
	if a := side.Axis(); side.Positive() {
		return &r.Plus[a]
	} else {
		return &r.Minus[a]
	}
}

// at returns the depth at a side.
func at(r domain.Radius, side domain.Direction) int { return *depthAt(&r, side) }

// farther adds a radius some times to another.
func farther(r, s domain.Radius, times int) domain.Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = r.Minus[a]+times*s.Minus[a], r.Plus[a]+times*s.Plus[a]
	}
	return r
}
