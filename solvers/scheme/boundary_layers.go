package scheme

import "github.com/halox/halox/domain"

// boundaryLayers returns how deep the boundary region of a stage is at each side: what
// neighbours need of what it writes, what it reads of ghosts that come from neighbours or change
// from step to step, and what ghosts behind physical faces are made from. All else, the interior,
// is swept while messages travel. Neighbours need nothing of a stage after which nothing is sent.
func (d *subdomain) boundaryLayers(x *Runner, stage int, sends bool) (layers domain.Radius) {
	st := &x.step.Stages[stage]
	if plan := x.plans[stage]; plan != nil && sends {
		for _, i := range d.out[stage] {
			for _, p := range plan.Messages[i].Parts {
				deepen(&layers, p.Dir, p.Send.Size(), p.Send.Size())
			}
		}
	}
	for _, a := range st.Writes {
		if g := x.ghosts[a.Variable]; g != nil {
			layers = deeper(layers, g[0].Layers(d.rank))
		}
	}
	for _, a := range st.Reads {
		r, changing := a.footprint().Radius(), domain.Radius{}
		if g := x.ghosts[a.Variable]; g != nil {
			changing = g[0].Layers(d.rank)
		}
		for _, side := range domain.Faces(x.place.Grid.Dims) {
			_, inside := x.place.Neighbour(d.rank, side)
			if inside && x.exchanged(a.Variable) || !inside && at(changing, side) > 0 {
				deepen(&layers, side, r.Minus, r.Plus)
			}
		}
	}
	return layers
}

// deepen makes the boundary region as deep at the sides of a direction as layers says.
func deepen(to *domain.Radius, dir domain.Direction, minus, plus domain.Vec) {
	for a, side := range dir {
		switch side {
		case -1:
			to.Minus[a] = max(to.Minus[a], minus[a])
		case 1:
			to.Plus[a] = max(to.Plus[a], plus[a])
		}
	}
}
