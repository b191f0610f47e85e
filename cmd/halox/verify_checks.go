package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

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
	out  io.Writer
	want []float64 // of one device; nil until it is needed
}

// verifySteps is the largest number of steps that the problem is solved for.
const verifySteps = 20

// checks returns all checks. A path that the links have not is left out, and said.
func (v *verifier) checks() (all []check) {
	paths := v.paths()
	for _, path := range paths {
		all = append(all, v.exchanges(path)...)
	}
	return append(all, v.runs(paths)...)
}

// paths returns the paths that all links have.
func (v *verifier) paths() (usable []p2p.Path) {
	for _, path := range p2p.Paths() {
		if _, err := halo.NewPlan(v.place, v.session.Links, path, v.spec(halo.Float64, halo.Corners, 1)); err != nil {
			fmt.Fprintf(v.out, "left out: path %s: %v\n", path, err)
			continue
		}
		usable = append(usable, path)
	}
	return usable
}

// spec returns a field to be exchanged.
func (v *verifier) spec(e halo.Element, connectivity halo.Connectivity, width int) halo.Spec {
	return halo.Spec{Name: "verified", Element: e, Connectivity: connectivity, Width: domain.UniformRadius(v.place.Grid.Dims, width)}
}

// exchanges returns the checks of a path against geometry.
func (v *verifier) exchanges(path p2p.Path) (all []check) {
	for _, width := range []int{1, 2} {
		if v.place.CheckWidth(domain.UniformRadius(v.place.Grid.Dims, width)) != nil {
			continue
		}
		for _, connectivity := range []halo.Connectivity{halo.Faces, halo.Corners} {
			for _, element := range []halo.Element{halo.Float32, halo.Float64} {
				c := halotest.Case{
					Placement: v.place, Links: v.session.Links, Compiler: v.session.Compiler, Path: path,
					Specs: []halo.Spec{v.spec(element, connectivity, width)},
				}
				name := fmt.Sprintf("exchange by %s of %s, width %d, %s: every point as geometry says", path, connected(connectivity), width, element)
				all = append(all, check{name, func(context.Context) error { return c.Run() }})
			}
		}
	}
	return all
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

// ways returns every scheme with its orders, and the steps between two exchanges of the config where it takes them.
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
	}
	return all
}

// runs returns the checks of every scheme and path against one device.
func (v *verifier) runs(paths []p2p.Path) (all []check) {
	for _, way := range v.ways() {
		for _, path := range paths {
			if needsOf(way.scheme).CheckPath(way.scheme, path) != nil {
				continue
			}
			name := fmt.Sprintf("scheme %v by %s: %d steps on %s give the bits of one", way, path, v.steps(), v.counted())
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
	if v.want == nil {
		if v.want, err = v.alone(ctx); err != nil {
			return fmt.Errorf("on one device: %w", err)
		}
	}
	got, err := v.solve(ctx, v.place, way, path)
	if err != nil {
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

// alone solves the problem on the first device.
func (v *verifier) alone(ctx context.Context) ([]float64, error) {
	whole, err := domain.Decompose(v.place.Grid, domain.Vec{1, 1, 1})
	if err != nil {
		return nil, err
	}
	place, err := halo.Place(whole, []*streams.Device{v.place.Devices[0]})
	if err != nil {
		return nil, err
	}
	return v.solve(ctx, place, way{scheme: scheme.Baseline}, p2p.Staged)
}

// solve runs the problem and returns all owned points.
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
	if _, err := s.Run(ctx, options); err != nil {
		return nil, err
	}
	values = make([]float64, place.Grid.Points())
	return values, s.Read(values, place.Grid.Box())
}
