package scheme

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo"
)

// copy returns the step with variables of its own on a placement, which hold anything. They are allocated all or
// none.
func (s *Step) copy(place *halo.Placement) (*Step, map[*Variable]*Variable, error) {
	var demand []halo.Spec
	for _, v := range s.variables() {
		demand = append(demand, slices.Repeat([]halo.Spec{v.Spec}, v.Levels())...)
	}
	if err := halo.Fit(place, 1, demand...); err != nil {
		return nil, nil, fmt.Errorf("scheme: copies of the variables: %w", err)
	}
	made := map[*Variable]*Variable{}
	for _, v := range s.variables() {
		u, err := NewVariable(place, v.Spec, v.Levels())
		if err != nil {
			for _, u := range made {
				err = errors.Join(err, u.Close())
			}
			return nil, nil, fmt.Errorf("scheme: copies of the variables: %w", err)
		}
		u.Boundary = v.Boundary
		made[v] = u
	}
	t := *s
	t.Stages, t.Measured = nil, nil
	for _, st := range s.Stages {
		st.Reads, st.Writes = copied(st.Reads, made), copied(st.Writes, made)
		t.Stages = append(t.Stages, st)
	}
	for _, v := range s.Measured {
		t.Measured = append(t.Measured, made[v])
	}
	return &t, made, nil
}

func copied(all []Access, made map[*Variable]*Variable) (copies []Access) {
	for _, a := range all {
		a.Variable = made[a.Variable]
		copies = append(copies, a)
	}
	return copies
}
