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

// A group is the steps between two exchanges, see Step.Group. Steps whose number is a multiple of the group's
// length end one, so that a run may begin and end within a group: owned points are complete after every step,
// and a run begins with an exchange. Every stage of a group except the last sweeps its subdomain and as many
// layers towards neighbors as all later stages read. The last one sweeps owned points, and the variables that
// the next group reads are exchanged after it.

// ends reports whether a step, or a phase, ends its group.
func (s *Step) ends(n int64) bool { return n%int64(s.group()) == 0 }

// reach returns how far a step reads: the sum of the radii of its stages.
func (s *Step) reach() (all domain.Radius) {
	for _, st := range s.Stages {
		all = farther(all, radiusOf(st.Reads), 1)
	}
	return all
}

// readRadius returns the radius in which stages read a variable.
func (s *Step) readRadius(v *Variable) domain.Radius { return radiusOf(s.reads(v)) }

// radiusOf returns the radius of accesses.
func radiusOf(reads []Access) (all domain.Radius) {
	for _, a := range reads {
		all = all.Max(a.footprint().Radius())
	}
	return all
}

// growth returns how many layers towards neighbors a stage of step n, or of its phase, sweeps: those that the
// rest of the group reads.
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

// grows reports whether the group continues after a stage of step n without an exchange.
func (s *Step) grows(n int64, stage int) bool {
	return s.group() > 1 && (!s.ends(n) || stage < len(s.Stages)-1)
}

// isolated reports whether kernels that store into ghosts of neighbors can ignore a stage of step n: the
// first stage of a group waits for stores of neighbors, the last stores, and the one before it signals that
// ghosts have been read.
func (s *Step) isolated(n int64, stage int) bool {
	k, stages := s.group(), len(s.Stages)
	place := int((n-1)%int64(k)+int64(k))%k*stages + stage
	return k > 1 && 0 < place && place < k*stages-2
}

// checkGroup returns an error unless steps can be run in groups.
func (s *Step) checkGroup() error {
	if s.Group < 0 {
		return fmt.Errorf("scheme: Step.Group must be at least 0, got %d", s.Group)
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
				return fmt.Errorf("scheme: %d steps between two exchanges: stage %d %q uses the position of a point "+
					"along %c, which is periodic: ghosts across its ends have other positions than their owners",
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
			return fmt.Errorf("has %d layers of ghosts in %v, must have %[4]d (%[3]d times the radius of a step): "+
				"see halo.WideHalo", have, side, s.group(), want)
		}
	}
	switch {
	case v.Spec.Widths != nil:
		return errors.New("must have equal ghosts for all components, since they are swept")
	case slices.Contains(v.Spec.Stagger, true):
		return errors.New("must not be staggered: its subdomains have other points than those that are swept")
	case int(v.Spec.Connectivity) < p.Grid.Dims-1:
		return errors.New("must have ghosts in edges and corners, which are swept: see halo.WideHalo")
	}
	return nil
}

// newGhosts prepares the ghosts of a field of a variable outside of physical boundaries, as far as a step
// reads them: profiles, reflections and mirrors need not support wider ones. User kernels set all ghosts.
func (s *Step) newGhosts(c *kernels.Compiler, v *Variable, f *halo.Field) (*boundary.Ghosts, error) {
	custom := slices.ContainsFunc(v.Boundary[:], func(b boundary.Condition) bool { return b.Kind == boundary.Custom })
	if s.group() == 1 && custom {
		return boundary.New(c, f, v.Boundary)
	}
	reach := boundary.Reach{Width: s.readRadius(v)}
	for _, a := range s.reads(v) {
		reach.Connectivity = max(reach.Connectivity, halo.Connectivity(a.footprint().Axes()-1))
	}
	return boundary.NewWithReach(c, f, v.Boundary, reach)
}

// depthAt returns the component of a radius for a side.
func depthAt(r *domain.Radius, side domain.Direction) *int {
	if a := side.Axis(); side.Positive() {
		return &r.Plus[a]
	} else {
		return &r.Minus[a]
	}
}

// at returns the depth at a side.
func at(r domain.Radius, side domain.Direction) int { return *depthAt(&r, side) }

// farther adds a radius several times to another.
func farther(r, s domain.Radius, times int) domain.Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = r.Minus[a]+times*s.Minus[a], r.Plus[a]+times*s.Plus[a]
	}
	return r
}
