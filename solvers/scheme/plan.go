package scheme

import (
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
)

// Plan is the exchanges of a step.
type Plan struct {
	Stages []*halo.Plan // after each stage; nil where it needs none
	Once   *halo.Plan   // before the first step of a run, of variables that are only read; nil if it needs none
}

// Plan plans the exchanges of the step over a path.
func (s *Step) Plan(links *p2p.Links, path p2p.Path) (p *Plan, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	p = &Plan{}
	for i := range s.Stages {
		var sent []*Variable
		for _, a := range s.sent(i) {
			sent = append(sent, a.Variable)
		}
		plan, err := s.planOf(links, path, sent)
		if err != nil {
			return nil, err
		}
		p.Stages = append(p.Stages, plan)
	}
	p.Once, err = s.planOf(links, path, s.onlyRead())
	return p, err
}

// planOf plans the exchange of variables together, nil if there are none.
func (s *Step) planOf(links *p2p.Links, path p2p.Path, variables []*Variable) (*halo.Plan, error) {
	if len(variables) == 0 {
		return nil, nil
	}
	return halo.NewPlan(s.placement(), links, path, specsOf(variables)...)
}

// on returns the plan for another placement of the same subdomains.
func (p *Plan) on(place *halo.Placement) *Plan {
	moved := &Plan{}
	for _, stage := range p.Stages {
		if stage != nil {
			stage = stage.On(place)
		}
		moved.Stages = append(moved.Stages, stage)
	}
	if p.Once != nil {
		moved.Once = p.Once.On(place)
	}
	return moved
}
