package configs

import "fmt"

// Heat is what the heat solver needs beside the rest.
type Heat struct {
	DT          float64 `json:"dt" yaml:"dt"` // time between two steps
	Diffusivity float64 `json:"diffusivity" yaml:"diffusivity"`
	Force       bool    `json:"force" yaml:"force"` // take DT even if it is not stable
	Stable      float64 `json:"-" yaml:"-"`         // see Run.StableStep
}

// heat reads the section heat, which only the heat solver has.
func (r *reader) heat(run *Run) *Heat {
	if run.Solver == SolverLaplace {
		r.noHeat()
		return nil
	}
	h := &Heat{Diffusivity: r.positive("heat.diffusivity"), Force: r.flag("heat.force")}
	if !r.isAuto("heat.dt") {
		h.DT = r.positive("heat.dt")
	}
	if !r.anyBad("heat.dt", "heat.diffusivity", "heat.force", "grid.size", "grid.spacing") && len(run.Grid.Spacing) > 0 && run.Stencil.Points > 0 {
		kind, _ := r.findStencil(run.Stencil)
		h.Stable = kind.StableStep(run.Grid.Spacing, h.Diffusivity)
		r.stability(h, h.Stable)
	}
	return h
}

// stability sets the time step that is left to halox, and checks the one that is not.
func (r *reader) stability(h *Heat, limit float64) {
	s, _ := r.lookup("heat.dt")
	switch {
	case !usable(limit):
		d, _ := r.lookup("heat.diffusivity")
		r.refuse("heat.diffusivity", d, fmt.Sprintf("gives a stability limit of %s, which is not a usable time step", number(limit)))
	case h.DT == 0:
		h.DT = limit
	case h.DT > limit && !h.Force:
		r.refuse("heat.dt", s, fmt.Sprintf("is not stable: at most %s on this grid, or set heat.force", number(limit)))
	}
}

func (r *reader) noHeat() {
	for _, name := range []string{"heat.dt", "heat.diffusivity", "heat.force"} {
		if s, ok := r.given(name); ok {
			r.refuse(name, s, "is not allowed: it belongs to solver heat, and the solver is laplace")
		}
	}
}
