package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepCase is a problem whose steps are timed, and how they are made.
type stepCase struct {
	precision string
	size      []int // of the grid
	devices   int
	parts     domain.Vec // how the grid is cut; zero where the option says how
	scheme    scheme.Scheme
	order     scheme.Order // "" where the scheme has none
	path      p2p.Path
	group     int       // steps between two exchanges; 0 is 1
	norms     int       // taken every so many steps; 0: never
	sums      sums.Mode // of the norms
}

// labels begins the row of a case. Alone a device sends nothing by any path.
func (c stepCase) labels() results.Row {
	row := results.NewRow().Label("scheme", c.scheme).Label("order", c.order)
	if c.devices > 1 {
		row = row.Label("path", c.path)
	}
	if c.group > 1 {
		row = row.Label("steps_an_exchange", c.group)
	}
	stencil := fmt.Sprintf("%d-point", 1+2*len(c.size))
	row = row.Label("devices", c.devices).Label("precision", c.precision).Label("stencil", stencil)
	if c.norms > 0 {
		row = row.Label("norms", cmp.Or(map[int]string{1: "every-step"}[c.norms], fmt.Sprintf("every-%d", c.norms)))
		if c.sums == sums.Reproducible {
			row = row.Label("sums", c.sums)
		}
	}
	return row
}

// points returns how many the grid has.
func (c stepCase) points() float64 {
	n := 1.0
	for _, side := range c.size {
		n *= float64(side)
	}
	return n
}

// flops is what the papers count for a point: a product each for the centre and for the
// sum of its neighbours, and a sum for each of these.
func (c stepCase) flops() float64 { return float64(2 + 2*len(c.size)) }

// values adds to a row what the time of a step comes to: beside it the rate of a plain
// copy, and the share of it that reading and writing every point once would have.
func (c stepCase) values(row results.Row, step, copyRate results.Sample) results.Row {
	bytes := 2 * c.points() * float64(kernels.Real(c.precision).Size()) / float64(c.devices)
	rate := step.Under(bytes / 1e3)
	return row.Value(results.Step, step).
		Value(results.Updates, step.Under(c.points()*1e6)).
		Value(results.GFLOPS, step.Under(c.points()*c.flops()/1e3)).
		Value(results.CopyRate, copyRate).Value(results.Share, rate.Scale(1/copyRate.Median))
}

// maxPoints is how many points a grid may have.
const maxPoints = 1 << 48

// problem returns heat between walls whose temperature differs from place to place, so that the field
// neither fades into numbers too small to be computed with at full speed, nor comes to be the same
// everywhere.
func (c stepCase) problem() (*solvers.Problem, error) {
	if c.points() > maxPoints {
		return nil, leftOut{fmt.Errorf("a grid of %.3g points; %.3g are possible", c.points(), float64(maxPoints))}
	}
	grid, err := domain.NewGrid(c.size, [3]bool{})
	if err != nil {
		return nil, err
	}
	const diffusivity = 1
	p := &solvers.Problem{Grid: grid, Spacing: slices.Repeat([]float64{1}, grid.Dims), Real: kernels.Real(c.precision), TimeStep: 0.1, Sums: c.sums, Group: c.group}
	if p.Stencil, err = stencil.HeatOf(stencil.Kinds(grid.Dims)[0], p.Spacing, diffusivity, p.TimeStep); err != nil {
		return nil, err
	}
	temperature := map[int]string{2: "1 + x + 2*y", 3: "1 + x + 2*y + 3*z"}[grid.Dims]
	if p.Initial, err = stencil.Parse(temperature + " + sin(y)"); err != nil {
		return nil, err
	}
	wall, err := stencil.Parse(temperature)
	for i := range domain.Faces(grid.Dims) {
		p.Walls[i] = solvers.Wall{Kind: solvers.Dirichlet, Value: wall}
	}
	return p, err
}

// leftOut is why something cannot be measured here, which is no failure.
type leftOut struct{ error }

// needsOf returns what a scheme needs; nothing of one that there is not.
func needsOf(s scheme.Scheme) scheme.Needs {
	needs, _ := scheme.NeedsOf(s)
	return needs
}

// takes reports whether a scheme can exchange over a path.
func takes(s scheme.Scheme, path p2p.Path) bool { return needsOf(s).CheckPath(s, path) == nil }

// setup is a case with its placement on the first of the devices, and how it came to its scheme and
// its path.
type setup struct {
	stepCase
	*bench.Machine
	problem *solvers.Problem
	place   *halo.Placement
	chosen  scheme.Scheme // Auto resolved
	plan    *halo.Plan    // of the exchange in a step
}

// newSetup plans a case.
func newSetup(ctx context.Context, on *bench.Machine, c stepCase, slabs bool) (s *setup, err error) {
	s = &setup{stepCase: c, Machine: on}
	if s.problem, err = c.problem(); err != nil {
		return nil, err
	}
	if err := s.cut(ctx, slabs); err != nil {
		return nil, err
	}
	s.chosen = scheme.Choose(c.scheme, s.place)
	if s.plan, err = halo.NewPlan(s.place, s.Links, s.wanted(), s.problem.Field()); err != nil {
		return nil, leftOut{err} // the links have no such path, or a subdomain is too large
	}
	return s, s.left(solvers.Fit(s.problem, s.place))
}

// left says of a case that does not fit into memory that it is left out.
func (s *setup) left(err error) error {
	if errors.Is(err, streams.ErrOutOfMemory) {
		return leftOut{err}
	}
	return err
}

// fits returns an error if the steps take more memory than is free, or the scheme does not suit them.
func (s *setup) fits(ctx context.Context) error {
	memory, err := solvers.DryRun(ctx, s.problem, s.plan, s.Compiler, s.options())
	if errors.Is(err, scheme.ErrUnsuited) {
		return leftOut{err}
	}
	if err != nil {
		return err
	}
	return s.left(scheme.Fit(memory))
}

// cut cuts the grid over the first of the devices, which get their subdomains as in a run.
func (s *setup) cut(ctx context.Context, slabs bool) (err error) {
	grid := s.problem.Grid
	c := halo.Cutting{
		Size: s.size, Periodic: grid.Periodic, Fields: []halo.Spec{s.problem.Field()}, Parts: s.parts, Devices: s.devices, Path: s.wanted(),
	}
	if !s.Processes.IsAlone() {
		c.Devices = 0 // all take part
	}
	if slabs && c.Parts == (domain.Vec{}) {
		c.Parts = bench.Slabs(grid.Dims, s.devices)
	}
	s.place, err = s.Cut(ctx, c)
	if _, refused := errors.AsType[*halo.OptionError](err); refused {
		return leftOut{err}
	}
	return err
}

// wanted returns the path that is wanted: where that is open, the scheme's.
func (s *setup) wanted() p2p.Path {
	if s.path != p2p.Auto {
		return s.path
	}
	return cmp.Or(needsOf(s.scheme).Path, p2p.Auto)
}

// options say how the steps are made.
func (s *setup) options() scheme.Options {
	o := scheme.Options{
		Scheme: s.chosen, Order: s.order, Steps: 1 << 50, Norm: scheme.MaxNorm, Limit: timing.Limit,
		CheckEvery: int64(s.norms), History: s.norms > 0,
	}
	if !s.Processes.IsAlone() {
		o.Limit = 0 // theirs
	}
	return o
}

// choose finds the scheme for scheme auto, on GPUs the fastest of all by trial.
func (s *setup) choose(ctx context.Context, notes io.Writer) error {
	if s.scheme != scheme.Auto {
		return nil
	}
	search := scheme.Search{Links: s.Links, Compiler: s.Compiler, Path: s.path, Driver: s.DriverVersion()}
	options := s.options()
	options.Order = scheme.LeftRight // as in a run
	begin := time.Now()
	trials, known, err := solvers.Fastest(ctx, s.problem, s.place, search, options)
	if err != nil || len(trials) == 0 {
		return err
	}
	if !known {
		fmt.Fprintf(notes, "tried the schemes for %.2f s: %v\n", time.Since(begin).Seconds(), trials)
	}
	return s.take(trials[0])
}

// take takes the fastest.
func (s *setup) take(fastest scheme.Trial) (err error) {
	s.chosen = fastest.Scheme
	s.plan, err = halo.NewPlan(s.place, s.Links, fastest.Path, s.problem.Field())
	return err
}

// note says what the scheme and the path came to, where halox chose them.
func (s *setup) note() string {
	var all []string
	if s.scheme == scheme.Auto {
		all = append(all, fmt.Sprintf("scheme auto is %s", s.chosen))
	}
	if scheme.SweepsInstead(s.chosen, s.Devices[0]) {
		all = append(all, fmt.Sprintf("%s ran sweeps: its kernels are for GPUs", s.chosen))
	}
	if s.path == p2p.Auto && len(s.plan.Messages) > 0 {
		all = append(all, fmt.Sprintf("path auto is %s", s.plan.Path()))
	}
	return strings.Join(all, ", ")
}
