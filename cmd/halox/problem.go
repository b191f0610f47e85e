package main

import (
	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/stencil"
)

// newProblem translates the config.
func newProblem(c *configs.Run) (*solvers.Problem, error) {
	var periodic [3]bool
	copy(periodic[:], c.Periodic())
	grid, err := domain.NewGrid(c.Grid.Size, periodic)
	if err != nil {
		return nil, err
	}
	p := &solvers.Problem{Grid: grid, Spacing: c.Spacing(), Real: kernels.Real(c.Precision), TimeStep: c.TimeStep(), Sums: sums.Mode(c.Stop.Sums), Group: max(1, int(c.Exchange.Steps))}
	kind := stencil.Kind{Points: c.Stencil.Points, Shape: stencil.Shape(c.Stencil.Shape)}
	if c.Heat != nil {
		p.Stencil, err = stencil.HeatOf(kind, p.Spacing, c.Heat.Diffusivity, p.TimeStep)
	} else {
		p.Stencil, err = stencil.LaplaceOf(kind, p.Spacing)
	}
	if err != nil {
		return nil, err
	}
	if p.Initial, err = stencil.Parse(c.Initial); err != nil {
		return nil, err
	}
	for i, face := range domain.Faces(grid.Dims) {
		if p.Walls[i], err = newWall(c.Boundary.Face(face.Axis(), i%2)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func newWall(f configs.Face) (solvers.Wall, error) {
	kind := wallKind(f.Kind)
	if kind != solvers.Dirichlet {
		return solvers.Wall{Kind: kind}, nil
	}
	value, err := stencil.Parse(f.Value)
	return solvers.Wall{Kind: kind, Value: value}, err
}

func wallKind(k configs.FaceKind) solvers.WallKind {
	switch k {
	case configs.Periodic:
		return solvers.Periodic
	case "neumann":
		return solvers.Neumann
	}
	return solvers.Dirichlet
}
