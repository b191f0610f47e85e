package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepCase is a problem whose steps are timed, and the settings of its run.
type stepCase struct {
	precision string
	stencil   option.Stencil
	size      []int // of the grid
	devices   int
	parts     domain.Vec // decomposition; zero: from the options
	scheme    scheme.Scheme
	order     scheme.Order // "" for schemes without orders
	path      p2p.Path
	group     int       // steps between two exchanges; 0 is 1
	norms     int       // steps between norms; 0: no norms
	sums      sums.Mode // of the norms

	statistics []solvers.StatisticKind // that are accumulated
}

// labels returns the labels of a case's row. A single device sends nothing, and has no path.
func (c stepCase) labels() results.Row {
	row := results.NewRow().Label("scheme", c.scheme).Label("order", c.order)
	if c.devices > 1 {
		row = row.Label("path", c.path)
	}
	if c.group > 1 {
		row = row.Label("steps_per_exchange", c.group)
	}
	row = row.Label("devices", c.devices).Label("precision", c.precision).Label("stencil", c.stencil.Name)
	if c.norms > 0 {
		row = row.Label("norms", cmp.Or(map[int]string{1: "every-step"}[c.norms], fmt.Sprintf("every-%d", c.norms)))
		if c.sums == sums.Reproducible {
			row = row.Label("sums", c.sums)
		}
	}
	return row
}

// points returns the number of points of the grid.
func (c stepCase) points() float64 {
	n := 1.0
	for _, side := range c.size {
		n *= float64(side)
	}
	return n
}

// values adds rates to a row, from the time of a step and the operations per point: the rate of a plain copy, and the
// rate of reading and writing each point once as a share of it.
func (c stepCase) values(row results.Row, step, copyRate results.Sample, operations int) results.Row {
	bytes := 2 * c.points() * float64(domain.Element(c.precision).Size()) / float64(c.devices)
	rate := step.Under(bytes / 1e3)
	return row.Value(results.Step, step).
		Value(results.Updates, step.Under(c.points()*1e6)).
		Value(results.GFLOPS, step.Under(c.points()*float64(operations)/1e3)).
		Value(results.CopyRate, copyRate).Value(results.Share, rate.Over(copyRate))
}

// maxPoints is the maximum number of points of a grid.
const maxPoints = 1 << 48

// problem returns a heat problem with boundary temperatures that vary along the faces, so that the field neither decays
// to subnormal numbers, which are slow, nor becomes constant.
func (c stepCase) problem() (*solvers.Problem, error) {
	if c.points() > maxPoints {
		return nil, bench.LeaveOut(fmt.Errorf("a grid of %.3g points; must be at most %.3g", c.points(),
			float64(maxPoints)))
	}
	grid, err := domain.NewGrid(c.size, nil)
	if err != nil {
		return nil, err
	}
	const diffusivity = 1
	p := &solvers.Problem{Grid: grid, Spacing: slices.Repeat([]float64{1}, grid.Dims), TimeStep: 0.1,
		Element: domain.Element(c.precision), Sums: c.sums, Group: c.group}
	if p.Stencil, err = stencil.HeatOf(c.stencil.Kind, p.Spacing, diffusivity, p.TimeStep); err != nil {
		return nil, err
	}
	for _, kind := range c.statistics {
		p.Statistics = append(p.Statistics, solvers.Statistic{Kind: kind, Field: p.Fields()[0]})
	}
	temperature := map[int]string{2: "1 + x + 2*y", 3: "1 + x + 2*y + 3*z"}[grid.Dims]
	if p.Initial, err = stencil.Parse(temperature + " + sin(y)"); err != nil {
		return nil, err
	}
	wall, err := stencil.Parse(temperature)
	for i := range domain.Faces(grid.Dims) {
		p.Boundary[i] = solvers.Condition{Kind: solvers.Dirichlet, Value: wall}
	}
	return p, err
}

// takes reports whether a scheme supports a path.
func takes(s scheme.Scheme, path p2p.Path) bool { return s.Needs().CheckPath(s, path) == nil }

// setup is a case on the first devices of a machine.
type setup struct {
	*solvers.Setup
	stepCase
}

// newSetup opens a case. It is left out if the grid, the links or the memory do not support it.
func newSetup(ctx context.Context, on *bench.Machine, c stepCase, slabs bool) (*setup, error) {
	problem, err := c.problem()
	if err != nil {
		return nil, err
	}
	o := solvers.OpenOptions{
		Options: scheme.Options{
			Scheme: c.scheme, Order: c.order, Path: c.path, Steps: 1 << 50, Norm: scheme.MaxNorm, Limit: timing.Limit,
			CheckEvery: int64(c.norms), History: c.norms > 0,
		},
		Parts: c.parts[:len(c.size)], Devices: c.devices,
	}
	if !on.Processes.IsAlone() {
		o.Devices = 0 // all take part
	}
	if slabs && c.parts == (domain.Vec{}) {
		parts := bench.Slabs(problem.Grid.Dims, c.devices)
		o.Parts = parts[:problem.Grid.Dims]
	}
	opened, err := solvers.Open(ctx, on.Session, problem, o)
	_, noPath := errors.AsType[*solvers.PlanError](err)
	if _, refused := errors.AsType[*halo.OptionError](err); refused || noPath {
		return nil, bench.LeaveOut(err)
	}
	if err != nil {
		return nil, err
	}
	return &setup{opened, c}, left(solvers.Fit(opened.Problem, opened.Place))
}

// left returns ErrLeftOut for a case that does not fit into memory, or that its scheme cannot run.
func left(err error) error { return bench.LeaveOut(err, streams.ErrOutOfMemory, scheme.ErrUnsuited) }

// note names the scheme and the path that auto chose.
func (s *setup) note() string {
	var all []string
	if s.stepCase.scheme == scheme.Auto {
		all = append(all, fmt.Sprintf("scheme auto is %s", s.Scheme))
	}
	if scheme.SweepsInstead(s.Scheme, s.Session.Devices[0]) {
		all = append(all, fmt.Sprintf("%s ran sweeps: its kernels are for GPUs", s.Scheme))
	}
	if s.path == p2p.Auto && len(s.Plan.Messages) > 0 {
		all = append(all, fmt.Sprintf("path auto is %s", s.Plan.Path()))
	}
	return strings.Join(all, ", ")
}
