package scheme

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/streams"
)

// checkGhosts returns ErrUnsuited where ghosts behind a face of no kind are not the same in both levels of a variable: a pass reads those of one level in
// all its steps. Elements that are no real numbers are not looked at.
func (b *blocked) checkGhosts(d *subdomain) error {
	if d.device.IsDry() {
		return nil
	}
	for _, w := range b.stage().Writes {
		v := w.Variable
		if _, ok := v.real(); !ok || b.ghosts[v] == nil {
			continue
		}
		reach := b.readReach(v)
		for _, side := range domain.Faces(b.place.Grid.Dims) {
			if _, inside := b.place.Neighbour(d.rank, side); inside || v.Boundary.At(side).Kind != "" || at(reach, side) == 0 {
				continue
			}
			same, err := b.sameBehind(d, v, side, at(reach, side))
			if err != nil {
				return err
			}
			if !same {
				return fmt.Errorf("scheme: %w: %s reads one level in all steps of a pass, and ghosts of %q behind face %v, which has no kind, differ between its levels: see Variable.SetAll", ErrUnsuited, Blocked, v.Spec.Name, side)
			}
		}
	}
	return nil
}

// readReach returns how far from a point the step reads a variable.
func (b *blocked) readReach(v *Variable) (reach domain.Radius) {
	for _, a := range b.step.reads(v) {
		reach = deeper(reach, a.footprint().Radius())
	}
	return reach
}

// sameBehind reports whether some layers of ghosts behind a face are the same in both levels.
func (b *blocked) sameBehind(d *subdomain, v *Variable, side domain.Direction, layers int) (same bool, err error) {
	box, a := b.place.Subdomains[d.rank].Box, side.Axis()
	if side.Positive() {
		box.Lo[a], box.Hi[a] = box.Hi[a], box.Hi[a]+layers
	} else {
		box.Lo[a], box.Hi[a] = box.Lo[a]-layers, box.Lo[a]
	}
	real, _ := v.real()
	reducer, err := reduce.NewNormReducer(b.compiler, d.device, real, b.step.Sums)
	if err != nil {
		return false, err
	}
	s, err := d.device.NewStream(streams.Normal)
	if err != nil {
		return false, err
	}
	defer s.Close()
	arrays, _ := v.Spec.Arrays()
	same = true
	for c := range arrays {
		n, err := reducer.Norms(v.levels[0].Array(d.rank, c), v.levels[1].Array(d.rank, c), box)
		if err != nil {
			return false, err
		}
		defer n.Close()
		if err := n.Queue(s); err != nil {
			return false, err
		}
		if err := s.Sync(b.patience()); err != nil {
			return false, err
		}
		same = same && n.Result().MaxChange == 0
	}
	return same, nil
}
