package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// check is one thing that must hold.
type check struct {
	name string
	run  func(ctx context.Context) error // says what is wrong first
}

// verifier makes the checks of halox verify on a grid that is small enough.
type verifier struct {
	*setup
	team   *launched
	out    io.Writer
	want   []float64 // of one device, on the process that speaks
	solved bool      // what one device gives is known
}

// lost reports whether a process has failed in a way that leaves the others nobody to go on with.
func (v *verifier) lost() bool { return !v.team.processes.IsAlone() && v.team.processes.Err() != nil }

// verifySteps is the largest number of steps that the problem is solved for.
const verifySteps = 20

// checks returns all checks. A path that the links have not is left out, and said.
func (v *verifier) checks(ctx context.Context) (all []check, err error) {
	paths, err := v.paths(ctx)
	for _, path := range paths {
		all = append(all, v.exchanges(path)...)
	}
	return append(all, v.runs(paths)...), err
}

// paths returns the paths that all links have. Between processes there is but one: where no process has two devices that
// are neighbours, any path stands for it.
func (v *verifier) paths(ctx context.Context) (usable []p2p.Path, err error) {
	for _, path := range p2p.Paths() {
		plan, err := halo.NewPlan(v.place, v.session.Links, path, v.spec(halo.Float64, halo.Corners, 1))
		if err := v.place.Agree(ctx, "plan path "+string(path), err); err != nil {
			if v.lost() {
				return nil, err
			}
			fmt.Fprintf(v.out, "left out: path %s: %v\n", path, err)
			continue
		}
		usable = append(usable, path)
		if !v.team.processes.IsAlone() && !v.within(plan) {
			break
		}
	}
	return usable, nil
}

// within reports whether a message goes between devices of one process.
func (v *verifier) within(plan *halo.Plan) bool {
	return slices.ContainsFunc(plan.Messages, func(m halo.Message) bool { return m.From != m.To && v.owner(m.From) == v.owner(m.To) })
}

// named is what a path is called: between processes there is path mpi beside it.
func (v *verifier) named(path p2p.Path) string {
	if v.team.processes.IsAlone() {
		return string(path)
	}
	return string(path) + " and mpi"
}

// spec returns a field to be exchanged.
func (v *verifier) spec(e halo.Element, connectivity halo.Connectivity, width int) halo.Spec {
	return halo.Spec{Name: "verified", Element: e, Connectivity: connectivity, Width: domain.UniformRadius(v.place.Grid.Dims, width)}
}

// exchanges returns the checks of a path against geometry.
func (v *verifier) exchanges(path p2p.Path) (all []check) {
	for _, width := range v.widths() {
		if v.place.CheckWidth(domain.UniformRadius(v.place.Grid.Dims, width)) != nil {
			continue
		}
		for _, connectivity := range []halo.Connectivity{halo.Faces, halo.Corners} {
			for _, element := range []halo.Element{halo.Float32, halo.Float64} {
				c := halotest.Case{
					Placement: v.place, Links: v.session.Links, Compiler: v.session.Compiler, Path: path,
					Specs: []halo.Spec{v.spec(element, connectivity, width)},
				}
				name := fmt.Sprintf("exchange by %s of %s, width %d, %s: every point as geometry says", v.named(path), connected(connectivity), width, element)
				all = append(all, check{name, func(context.Context) error { return c.Run() }})
			}
		}
	}
	return all
}

// widths are those of ghosts that are exchanged: 1 and 2, and those of the problem where they are wider.
func (v *verifier) widths() []int {
	of := v.problem.Width()
	most := 2
	for a := range v.place.Grid.Dims {
		most = max(most, of.Minus[a], of.Plus[a])
	}
	return slices.Compact([]int{1, 2, most})
}

func connected(r halo.Connectivity) string {
	if r == halo.Faces {
		return "faces"
	}
	return "faces, edges and corners"
}

// way is a way to run a problem.
type way struct {
	scheme scheme.Scheme
	order  scheme.Order // "" for schemes without one
	group  int          // steps between two exchanges; 0 is 1
}

// String names the scheme, and how it exchanges.
func (w way) String() string {
	text := string(w.scheme)
	if w.order != "" {
		text += " " + string(w.order)
	}
	if w.group > 1 {
		text += fmt.Sprintf(" with %d steps an exchange", w.group)
	}
	return text
}

// ways returns every scheme with its orders, and the steps between two exchanges of the config where it takes them; blocked with several
// too where these are one.
func (v *verifier) ways() (all []way) {
	for _, s := range scheme.All() {
		w := way{scheme: s}
		needs := needsOf(s)
		if needs.Groups {
			w.group = v.problem.Group
		}
		for _, w.order = range append(needs.Orders, "")[:max(1, len(needs.Orders))] {
			all = append(all, w)
		}
		if s == scheme.Blocked && w.group <= 1 {
			if w.group = v.mostSteps(); w.group > 1 { // with one it makes sweeps, and no passes
				all = append(all, w)
			}
		}
	}
	return all
}

// mostSteps returns how many steps between two exchanges subdomains have the layers for: 4 at most.
func (v *verifier) mostSteps() int {
	for steps := 4; steps > 1; steps-- {
		of := *v.problem
		of.Group = steps
		if v.place.CheckWidth(of.Width()) == nil {
			return steps
		}
	}
	return 1
}

// runs returns the checks of every scheme and path against one device. A scheme that takes fewer devices is left out, and said.
func (v *verifier) runs(paths []p2p.Path) (all []check) {
	for _, way := range v.ways() {
		if err := takesDevices(way.scheme, len(v.place.Devices)); err != nil {
			fmt.Fprintf(v.out, "left out: scheme %v\n", err)
			continue
		}
		for _, path := range paths {
			if needsOf(way.scheme).CheckPath(way.scheme, path) != nil {
				continue
			}
			name := fmt.Sprintf("scheme %v by %s: %d steps on %s give the bits of one", way, v.named(path), v.steps(), v.counted())
			all = append(all, check{name, func(ctx context.Context) error { return v.compare(ctx, way, path) }})
		}
	}
	return all
}

// steps returns how many steps the problem is solved for.
func (v *verifier) steps() int { return min(v.config.Stop.Iterations, verifySteps) }

// compare solves the problem on all devices and compares every point with what one
// device gives.
func (v *verifier) compare(ctx context.Context, way way, path p2p.Path) (err error) {
	if !v.solved {
		if v.team.speaks() {
			v.want, err = v.one(ctx)
		}
		if err := v.place.Agree(ctx, "solve on one device", err); err != nil {
			return fmt.Errorf("on one device: %w", err)
		}
		v.solved = true
	}
	got, err := v.solve(ctx, v.place, way, path)
	if err != nil || !v.team.speaks() {
		return err
	}
	return firstWrong(v.place.Grid, got, v.want)
}

// firstWrong returns an error that names the first point whose bits differ.
func firstWrong(g domain.Grid, got, want []float64) error {
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			at := domain.Vec{i % g.Size[0], i / g.Size[0] % g.Size[1], i / g.Size[0] / g.Size[1]}
			return fmt.Errorf("point %v is %v, on one device %v", at, got[i], want[i])
		}
	}
	return nil
}

// one solves the problem on the first device.
func (v *verifier) one(ctx context.Context) ([]float64, error) {
	whole, err := domain.Decompose(v.place.Grid, domain.Vec{1, 1, 1})
	if err != nil {
		return nil, err
	}
	place, err := halo.Place(whole, []*streams.Device{v.place.FirstDevice()})
	if err != nil {
		return nil, err
	}
	return v.solve(ctx, place, way{scheme: scheme.Baseline}, p2p.Staged)
}

// solve runs the problem and returns all owned points, on the process that speaks.
func (v *verifier) solve(ctx context.Context, place *halo.Placement, way way, path p2p.Path) (values []float64, err error) {
	p := *v.problem
	p.Group = way.group
	plan, err := halo.NewPlan(place, v.session.Links, path, p.Field())
	if err != nil {
		return nil, err
	}
	s, err := solvers.New(ctx, &p, plan, v.session.Compiler)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	options := scheme.Options{Scheme: way.scheme, Order: way.order, Steps: int64(v.steps()), CheckEvery: int64(v.steps()), Limit: waitLimit}
	if !place.Processes.IsAlone() {
		options.Limit = 0 // as in a run
	}
	if _, err := s.Run(ctx, options); err != nil {
		return nil, err
	}
	if v.team.speaks() {
		values = make([]float64, place.Grid.Points())
	}
	return values, s.Gather(ctx, values, place.Grid.Box())
}
