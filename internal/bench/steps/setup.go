package steps

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// setup is a case with its placement on the first of the devices, and how it came to its scheme and
// its path.
type setup struct {
	stepCase
	*bench.Machine
	problem *solvers.Problem
	links   *p2p.Links
	place   *halo.Placement
	chosen  scheme.Scheme // Auto resolved
	plan    *halo.Plan    // of the exchange in a step
}

// newSetup plans a case.
func newSetup(ctx context.Context, on *bench.Machine, links *p2p.Links, c stepCase, slabs bool) (s *setup, err error) {
	s = &setup{stepCase: c, Machine: on, links: links}
	if s.problem, err = c.problem(); err != nil {
		return nil, err
	}
	cut, err := c.cut(s.problem.Grid, slabs)
	if err != nil {
		return nil, leftOut{err}
	}
	if err := s.mapDevices(ctx, cut); err != nil {
		return nil, err
	}
	s.chosen = scheme.Choose(c.scheme, s.place)
	if s.plan, err = halo.NewPlan(s.place, links, s.wanted(), s.problem.Field()); err != nil {
		return nil, leftOut{err} // the links have no such path, or a subdomain is too large
	}
	needs, err := s.plan.Needs(solverFields)
	if err != nil {
		return nil, err
	}
	if err := halo.Fit(needs); err != nil {
		return nil, leftOut{err}
	}
	return s, nil
}

// solverFields is how many fields a solver has, each with an exchanger: steps read one and write the
// other.
const solverFields = 2

// cut cuts the grid.
func (c stepCase) cut(grid domain.Grid, slabs bool) (cut *domain.Decomposition, err error) {
	width, parts := domain.UniformRadius(grid.Dims, 1), c.parts
	switch {
	case parts != domain.Vec{}:
	case slabs:
		parts = bench.Slabs(grid.Dims, c.devices)
	default:
		if parts, err = domain.AutoParts(grid, c.devices, width); err != nil {
			return nil, err
		}
	}
	if cut, err = domain.Decompose(grid, parts); err != nil {
		return nil, err
	}
	return cut, cut.CheckWidth(width)
}

// wanted returns the path that is wanted: where that is open, the scheme's.
func (s *setup) wanted() p2p.Path {
	if s.path != p2p.Auto {
		return s.path
	}
	return cmp.Or(needsOf(s.scheme).Path, p2p.Auto)
}

// mapDevices gives the subdomains their devices, as a run does, and measures the links where that,
// or the path of a message, depends on it.
func (s *setup) mapDevices(ctx context.Context, cut *domain.Decomposition) (err error) {
	devices := s.Devices[:s.devices:s.devices]
	open := devices[0].Backend == streams.CUDA && len(devices) > 2
	if (open || s.wanted() == p2p.Auto && len(devices) > 1) && s.links.Model == nil {
		if s.links.Model, err = halo.LinkModel(ctx, devices, s.links, s.Compiler, s.Driver, ""); err != nil {
			return err
		}
	}
	if open {
		s.place, _, err = halo.MapDevices(cut, devices, s.cost, s.problem.Field())
	} else {
		s.place, err = halo.Place(cut, devices)
	}
	return err
}

// cost returns what a packed message takes by the link model, in seconds.
func (s *setup) cost(from, to *streams.Device, bytes int64) float64 {
	message := p2p.MessageShape{Bytes: bytes, Packed: true}
	path, _, err := s.links.Choose(s.wanted(), from, to, message)
	took, known := s.links.Model.Time(from, to, path, message)
	if err != nil || !known {
		return math.Inf(1)
	}
	return took.Seconds()
}

// options say how the steps are made.
func (s *setup) options() scheme.Options {
	return scheme.Options{
		Scheme: s.chosen, Order: s.order, Steps: 1 << 50, Norm: scheme.MaxNorm, Limit: timing.Limit,
		CheckEvery: int64(max(1, s.norms)), History: s.norms > 0,
	}
}

// choose finds the scheme for scheme auto, on GPUs the fastest of all by trial.
func (s *setup) choose(ctx context.Context, notes io.Writer) error {
	if s.scheme != scheme.Auto {
		return nil
	}
	search := scheme.Search{Links: s.links, Compiler: s.Compiler, Path: s.path, Driver: s.Driver, Program: s.Program}
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
	s.plan, err = halo.NewPlan(s.place, s.links, fastest.Path, s.problem.Field())
	return err
}

// note says what the scheme and the path came to, where halox chose them.
func (s *setup) note() string {
	var all []string
	if s.scheme == scheme.Auto {
		all = append(all, fmt.Sprintf("scheme auto is %s", s.chosen))
	}
	if s.path == p2p.Auto && len(s.plan.Messages) > 0 {
		all = append(all, fmt.Sprintf("path auto is %s", s.plan.Path()))
	}
	return strings.Join(all, ", ")
}
