package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// job is a config with all that runs it: the place where the parts of halox
// are wired together.
type job struct {
	config  *configs.Run
	problem *solvers.Problem
	machine *machine
	devices []*streams.Device
	links   *p2p.Links
	place   *halo.Placement
	solver  *solvers.Solver
	scheme  solvers.Scheme
}

// newJob makes everything ready. Notes for the user go to notes.
func newJob(c *configs.Run, notes io.Writer) (j *job, err error) {
	j = &job{config: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.close())
		}
	}()
	if j.problem, err = newProblem(c); err != nil {
		return j, err
	}
	if j.machine, err = openMachine(c.Devices, notes); err != nil {
		return j, err
	}
	if err := j.cut(); err != nil {
		return j, err
	}
	if j.links, err = p2p.Discover(j.devices, j.machine.topology()); err != nil {
		return j, err
	}
	j.scheme = solvers.Choose(solvers.Scheme(c.Exchange.Scheme), j.place)
	path := p2p.Path(c.Exchange.Path)
	if j.scheme == solvers.Baseline {
		path = p2p.Staged // the baseline knows no other
	}
	compiler := kernels.NewCompiler(kernels.Options{NVRTC: os.Getenv("HALOX_NVRTC"), Cache: os.Getenv("HALOX_CACHE")})
	plan, err := halo.NewPlan(j.place, j.links, path, j.problem.Field())
	if err != nil {
		return j, err
	}
	j.solver, err = solvers.New(j.problem, plan, compiler)
	return j, err
}

// cut chooses and opens the devices and cuts the grid for them. Where the
// config leaves the number open, it is the largest that the grid can be cut
// for.
func (j *job) cut() error {
	ids, err := j.machine.ids(j.config.Devices)
	if err != nil {
		return err
	}
	width := j.problem.Width()
	parts := domain.Vec{1, 1, 1}
	if copy(parts[:], j.config.Decomposition) == 0 {
		parts, err = domain.AutoParts(j.problem.Grid, len(ids), width)
		for err != nil && j.config.Devices.Count == 0 && len(ids) > 1 {
			ids = ids[:len(ids)-1]
			parts, err = domain.AutoParts(j.problem.Grid, len(ids), width)
		}
		if err != nil {
			return fmt.Errorf("devices.count: %w", err)
		}
	}
	if int(parts.Product()) != len(ids) {
		return fmt.Errorf("decomposition: %v is for %d devices; %d are used", parts, parts.Product(), len(ids))
	}
	cut, err := domain.Decompose(j.problem.Grid, parts)
	if err != nil {
		return fmt.Errorf("decomposition: %w", err)
	}
	if j.devices, err = j.machine.platform.Open(ids...); err != nil {
		return err
	}
	j.place, err = halo.Place(cut, j.devices)
	return err
}

// newProblem translates the config.
func newProblem(c *configs.Run) (*solvers.Problem, error) {
	var periodic [3]bool
	copy(periodic[:], c.Periodic())
	grid, err := domain.NewGrid(c.Grid.Size, periodic)
	if err != nil {
		return nil, err
	}
	p := &solvers.Problem{Grid: grid, Spacing: c.Spacing(), Real: kernels.Real(c.Precision), TimeStep: c.TimeStep()}
	if c.Heat != nil {
		p.Star, err = stencil.Heat(p.Spacing, c.Heat.Diffusivity, p.TimeStep)
	} else {
		p.Star, err = stencil.Laplace(p.Spacing)
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
	switch f.Kind {
	case configs.Periodic:
		return solvers.Wall{Kind: solvers.Periodic}, nil
	case configs.Neumann:
		return solvers.Wall{Kind: solvers.Neumann}, nil
	}
	value, err := stencil.Parse(f.Value)
	return solvers.Wall{Kind: solvers.Dirichlet, Value: value}, err
}

// close frees the devices and what is on them.
func (j *job) close() error {
	err := streams.CloseAll(j.devices)
	if j.machine != nil {
		err = errors.Join(err, j.machine.close())
	}
	return err
}
