// Package verify checks exchanges against geometry, every scheme against the result of one device, and device ranks by
// litmus tests, on the devices, grid and decomposition of a problem.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/halo/ranks/litmus"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// check is a condition that must hold.
type check struct {
	name string
	run  func(ctx context.Context) error // returns an error for the first difference
}

// Done is a completed check.
type Done struct {
	Name   string `json:"name"`
	Result string `json:"result"` // "ok", "failed" or "left out"
	Why    string `json:"why,omitempty"`
}

// ErrFailed is the error of checks that failed.
var ErrFailed = errors.New("checks failed")

// Verifier checks exchanges and schemes on the devices of a setup, whose grid must be small enough to check every point
// many times, see Reduced. If processes share the grid all call its methods, and rank 0 prints.
type Verifier struct {
	*solvers.Setup
	Steps  int                // steps of each run
	Limit  time.Duration      // time limit of waits, see scheme.Options
	Out    io.Writer          // gets a line for each check and each skipped check
	During func(doing string) // called with the name of the next check
	Done   []Done             // results of the checks so far
	want   []float64          // the result of one device, on rank 0
	solved bool               // want is set
	ahead  *kernels.Ahead     // compiles the kernels of all schemes in parallel; may be nil
}

// processes returns those that share the grid.
func (v *Verifier) processes() *mpi.Processes { return v.Place.Processes.OrAlone() }

// lost reports whether a process has failed, so that the others cannot continue.
func (v *Verifier) lost() bool { return !v.processes().IsAlone() && v.processes().Err() != nil }

// All runs all checks, and prints a line for each and their number. It returns an error if one fails.
func (v *Verifier) All(ctx context.Context) error {
	checks, err := v.checks(ctx)
	if v.ahead != nil {
		defer v.ahead.Stop()
	}
	if err != nil {
		return err
	}
	return v.report(ctx, append(checks, v.ranks()...))
}

// checks returns all checks. A path that the links do not support is left out, with a line.
func (v *Verifier) checks(ctx context.Context) (all []check, err error) {
	paths, err := v.paths(ctx)
	for _, path := range paths {
		all = append(all, v.exchanges(path)...)
	}
	return append(all, v.runs(ctx, paths)...), err
}

// paths returns the paths that all links support. Between processes there is only one path: if no process has two
// devices that are neighbors, any one path represents it.
func (v *Verifier) paths(ctx context.Context) (usable []p2p.Path, err error) {
	for _, path := range p2p.Paths() {
		plan, err := halo.NewPlan(v.Place, v.Session.Links, path, v.spec(halo.Float64, halo.Corners, 1))
		if err := v.Place.Agree(ctx, "plan path "+string(path), err); err != nil {
			if v.lost() {
				return nil, err
			}
			fmt.Fprintf(v.Out, "left out: path %s: %v\n", path, err)
			continue
		}
		usable = append(usable, path)
		if !v.processes().IsAlone() && !v.within(plan) {
			break
		}
	}
	return usable, nil
}

// within reports whether a message is sent between devices of one process.
func (v *Verifier) within(plan *halo.Plan) bool {
	return slices.ContainsFunc(plan.Messages, func(m halo.Message) bool {
		return m.From != m.To && v.Place.Owners[m.From] == v.Place.Owners[m.To]
	})
}

// named returns the name of a path; between processes path mpi is used too.
func (v *Verifier) named(path p2p.Path) string {
	if v.processes().IsAlone() {
		return string(path)
	}
	return string(path) + " and mpi"
}

// spec returns a field to exchange.
func (v *Verifier) spec(e domain.Element, connectivity halo.Connectivity, width int) halo.Spec {
	return halo.Spec{Name: "verified", Element: e, Connectivity: connectivity,
		Width: domain.UniformRadius(v.Place.Grid.Dims, width)}
}

// exchanges returns the checks of a path against geometry.
func (v *Verifier) exchanges(path p2p.Path) (all []check) {
	for _, width := range v.widths() {
		if v.Place.CheckWidth(domain.UniformRadius(v.Place.Grid.Dims, width)) != nil {
			continue
		}
		for _, connectivity := range []halo.Connectivity{halo.Faces, halo.Corners} {
			for _, element := range []domain.Element{halo.Float32, halo.Float64} {
				c := halotest.Case{
					Placement: v.Place, Links: v.Session.Links, Compiler: v.Session.Compiler, Path: path,
					Specs: []halo.Spec{v.spec(element, connectivity, width)},
				}
				name := fmt.Sprintf("exchange by %s of %s, width %d, %s: all points correct", v.named(path),
					connected(connectivity), width, element)
				all = append(all, check{name, func(context.Context) error { return c.Run() }})
			}
		}
	}
	return all
}

// widths returns the widths of exchanged ghosts: 1 and 2, and those of the problem if they are larger.
func (v *Verifier) widths() []int {
	of := v.Problem.Width()
	most := 2
	for a := range v.Place.Grid.Dims {
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
		text += fmt.Sprintf(" with %d steps per exchange", w.group)
	}
	return text
}

// ways returns every scheme with its orders, and the exchange interval of the config if it supports that; blocked also
// with several steps if that is one.
func (v *Verifier) ways() (all []way) {
	for _, s := range scheme.All() {
		w := way{scheme: s}
		needs := s.Needs()
		if needs.Groups {
			w.group = v.Problem.Group
		}
		for _, w.order = range append(needs.Orders, "")[:max(1, len(needs.Orders))] {
			all = append(all, w)
		}
		if s == scheme.Blocked && w.group <= 1 {
			if w.group = v.mostSteps(); w.group > 1 { // with one step it runs sweeps, not passes
				all = append(all, w)
			}
		}
	}
	return all
}

// mostSteps returns the largest exchange interval, up to 4, for which subdomains have enough layers.
func (v *Verifier) mostSteps() int {
	for steps := 4; steps > 1; steps-- {
		of := *v.Problem
		of.Group = steps
		if v.Place.CheckWidth(of.Width()) == nil {
			return steps
		}
	}
	return 1
}

// runs returns the checks of every scheme and path against one device, and begins to compile their kernels. A scheme
// that supports fewer devices is left out, with a line.
func (v *Verifier) runs(ctx context.Context, paths []p2p.Path) (all []check) {
	for _, way := range v.ways() {
		if err := way.scheme.Needs().CheckDevices(way.scheme, len(v.Place.Devices)); err != nil {
			fmt.Fprintf(v.Out, "left out: scheme %v\n", err)
			continue
		}
		for _, path := range paths {
			if way.scheme.Needs().CheckPath(way.scheme, path) != nil {
				continue
			}
			name := fmt.Sprintf("scheme %v by %s: %d steps on %s match one device bit for bit", way, v.named(path),
				v.Steps, v.Counted())
			all = append(all, check{name, func(ctx context.Context) error { return v.compare(ctx, way, path) }})
			if v.processes().IsAlone() {
				v.ahead = solvers.Ahead(ctx, v.in(way), v.Place, scheme.Search{
					Links: v.Session.Links, Compiler: v.Session.Compiler, Path: path, Ahead: v.ahead,
				}, v.options(way))
			}
		}
	}
	return all
}

// compare solves the problem on all devices and compares every point with the result of one device.
func (v *Verifier) compare(ctx context.Context, way way, path p2p.Path) (err error) {
	if !v.solved {
		if v.processes().Rank == 0 {
			v.want, err = v.one(ctx)
		}
		if err := v.Place.Agree(ctx, "solve on one device", err); err != nil {
			return fmt.Errorf("on one device: %w", err)
		}
		v.solved = true
	}
	got, err := v.solve(ctx, v.Place, way, path)
	if err != nil || v.processes().Rank > 0 {
		return err
	}
	return firstWrong(v.Place.Grid, got, v.want)
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
func (v *Verifier) one(ctx context.Context) ([]float64, error) {
	whole, err := domain.Decompose(v.Place.Grid, domain.Vec{1, 1, 1})
	if err != nil {
		return nil, err
	}
	place, err := halo.Place(whole, []*streams.Device{v.Place.FirstDevice()})
	if err != nil {
		return nil, err
	}
	return v.solve(ctx, place, way{scheme: scheme.Baseline}, p2p.Staged)
}

// in returns the problem in the groups of a way.
func (v *Verifier) in(w way) *solvers.Problem {
	p := *v.Problem
	p.Group = w.group
	return &p
}

// options returns the options of a run. Norms are checked within launches if schemes support that. The kernels of
// blocked for that take longer to compile than all others together: it checks norms as often as the run of the setup,
// and so needs these kernels only if that does.
func (v *Verifier) options(w way) scheme.Options {
	every := int64(v.Steps)
	if w.scheme == scheme.Blocked {
		every = v.Setup.Options().CheckEvery
	}
	return scheme.Options{Scheme: w.scheme, Order: w.order, Steps: int64(v.Steps), CheckEvery: every, Limit: v.Limit}
}

// solve runs the problem and returns all owned points, on rank 0.
func (v *Verifier) solve(ctx context.Context, place *halo.Placement, way way, path p2p.Path) (values []float64,
	err error) {
	p := v.in(way)
	plan, err := p.NewPlan(place, v.Session.Links, path)
	if err != nil {
		return nil, err
	}
	s, err := solvers.New(ctx, p, plan, v.Session.Compiler)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	options := v.options(way)
	if !place.Processes.IsAlone() {
		options.Limit = 0 // as in a run
	}
	if _, err := s.Run(ctx, options); err != nil {
		return nil, err
	}
	var points []float64
	if v.processes().Rank == 0 {
		points = make([]float64, place.Grid.Points())
	}
	for i := range p.Fields() {
		if err := s.Gather(ctx, i, points, place.Grid.Box()); err != nil {
			return nil, err
		}
		values = append(values, points...)
	}
	return values, nil
}

// Soak runs litmus tests of device ranks with random seeds for a duration or, unless seed is 0, the one test with the
// seed, and prints the number of tests.
func (v *Verifier) Soak(ctx context.Context, long time.Duration, seed uint32) error {
	tests := litmus.Tests{Compiler: v.Session.Compiler, Links: v.Session.Links, Limit: v.Limit, Seed: seed}
	devices := v.devices()
	if n := len(devices); n > ranks.MaxDevices {
		fmt.Fprintf(v.Out, "left out: all except the first %d of %d devices, the most that ranks support\n",
			ranks.MaxDevices, n)
		devices = devices[:ranks.MaxDevices]
	}
	done, err := tests.Soak(ctx, long, devices...)
	fmt.Fprintf(v.Out, "litmus tests of ranks: %d turns of %d rounds in %v\n", done.Turns, done.Rounds,
		done.Took.Round(time.Millisecond))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; --ranks-seed runs it again", err)
	}
	return err
}

// devices returns the devices of the setup, each once.
func (v *Verifier) devices() (all []*streams.Device) {
	for _, d := range v.Place.Devices {
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// ranks returns the litmus tests of ranks on the devices of several processes, which Soak does not run. They end
// together, so that none is abandoned when the command is interrupted. There are none if there are too many devices.
func (v *Verifier) ranks() (all []check) {
	p, devices, n := v.processes(), v.Session.Devices, 0
	if p.IsAlone() {
		return nil
	}
	tests := litmus.Tests{Compiler: v.Session.Compiler, Links: v.Session.Links, Limit: v.Limit, Processes: p}
	for _, count := range v.Session.Counts() {
		n += count
	}
	of := fmt.Sprintf("ranks of %d devices of %s: ", n, p.Counted())
	if n > ranks.MaxDevices {
		fmt.Fprintf(v.Out, "left out: %smust be at most %d\n", of, ranks.MaxDevices)
		return nil
	}
	add := func(name string, run func(ctx context.Context) error) {
		all = append(all, check{of + name, func(ctx context.Context) error { return run(context.WithoutCancel(ctx)) }})
	}
	add("no rank leaves a barrier early, and earlier stores are visible",
		func(ctx context.Context) error { return tests.Barriers(ctx, devices...) })
	add("one rank receives simultaneous puts of all ranks", func(ctx context.Context) error {
		return tests.AllToOne(ctx, devices...)
	})
	add("puts of every alignment arrive before their notification, and tags are counted separately",
		func(ctx context.Context) error {
			return errors.Join(tests.Puts(ctx, devices...), tests.Counts(ctx, devices...))
		})
	return all
}

// report runs all checks, and prints a line for each and their number. It returns an error if one fails.
func (v *Verifier) report(ctx context.Context, checks []check) error {
	failed, left := 0, 0
	for _, c := range checks {
		v.During(c.name)
		if err := v.interrupted(ctx); err != nil {
			return err
		}
		err := c.run(ctx)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err = v.Place.Agree(ctx, c.name, err); err != nil && v.lost() {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if errors.Is(err, scheme.ErrUnsuited) {
			left++
			v.Done = append(v.Done, Done{c.name, "left out", err.Error()})
			fmt.Fprintf(v.Out, "--    %s: %v\n", c.name, err)
			continue
		}
		if err != nil {
			failed++
			v.Done = append(v.Done, Done{c.name, "failed", err.Error()})
			fmt.Fprintf(v.Out, "FAIL  %s: %v\n", c.name, err)
			continue
		}
		v.Done = append(v.Done, Done{Name: c.name, Result: "ok"})
		fmt.Fprintf(v.Out, "ok    %s\n", c.name)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d %w", failed, len(checks), ErrFailed)
	}
	fmt.Fprintf(v.Out, "all %d checks hold\n", len(checks)-left)
	return nil
}

// interrupted returns context.Canceled on all processes if the context of one has ended.
func (v *Verifier) interrupted(ctx context.Context) error {
	all, err := mpi.Gather(context.Background(), v.processes(), "see whether to go on", ctx.Err() != nil)
	if slices.Contains(all, true) {
		return context.Canceled
	}
	return err
}

// maxPoints is the maximum number of points of a grid of which every point is checked many times.
const maxPoints = 1 << 18

// Reduced returns the size of the grid, halved along its longest axes until it has at most maxPoints points. Each part
// keeps at least four layers, or all of its layers.
func Reduced(g domain.Grid, parts domain.Vec) domain.Vec {
	n := g.Size
	for n.Product() > maxPoints {
		axis := -1
		for a := range n {
			if (n[a]+1)/2 >= 4*parts[a] && (axis < 0 || n[a] > n[axis]) {
				axis = a
			}
		}
		if axis < 0 {
			return n
		}
		n[axis] = (n[axis] + 1) / 2
	}
	return n
}
