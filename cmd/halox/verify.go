package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/halo/ranks/litmus"
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
	team   *processGroup
	out    io.Writer
	want   []float64 // of one device, on the process that speaks
	solved bool      // what one device gives is known
}

// lost reports whether a process has failed in a way that leaves the others nobody to go on with.
func (v *verifier) lost() bool { return !v.team.IsAlone() && v.team.Err() != nil }

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

// paths returns the paths that all links have. Between processes there is but one: where no process has two devices
// that are neighbours, any path stands for it.
func (v *verifier) paths(ctx context.Context) (usable []p2p.Path, err error) {
	for _, path := range p2p.Paths() {
		plan, err := halo.NewPlan(v.Place, v.Session.Links, path, v.spec(halo.Float64, halo.Corners, 1))
		if err := v.Place.Agree(ctx, "plan path "+string(path), err); err != nil {
			if v.lost() {
				return nil, err
			}
			fmt.Fprintf(v.out, "left out: path %s: %v\n", path, err)
			continue
		}
		usable = append(usable, path)
		if !v.team.IsAlone() && !v.within(plan) {
			break
		}
	}
	return usable, nil
}

// within reports whether a message goes between devices of one process.
func (v *verifier) within(plan *halo.Plan) bool {
	return slices.ContainsFunc(plan.Messages, func(m halo.Message) bool {
		return m.From != m.To &&
			v.owner(m.From) == v.owner(m.To)
	})
}

// named is what a path is called: between processes there is path mpi beside it.
func (v *verifier) named(path p2p.Path) string {
	if v.team.IsAlone() {
		return string(path)
	}
	return string(path) + " and mpi"
}

// spec returns a field to be exchanged.
func (v *verifier) spec(e halo.Element, connectivity halo.Connectivity, width int) halo.Spec {
	return halo.Spec{Name: "verified", Element: e, Connectivity: connectivity,
		Width: domain.UniformRadius(v.Place.Grid.Dims, width)}
}

// exchanges returns the checks of a path against geometry.
func (v *verifier) exchanges(path p2p.Path) (all []check) {
	for _, width := range v.widths() {
		if v.Place.CheckWidth(domain.UniformRadius(v.Place.Grid.Dims, width)) != nil {
			continue
		}
		for _, connectivity := range []halo.Connectivity{halo.Faces, halo.Corners} {
			for _, element := range []halo.Element{halo.Float32, halo.Float64} {
				c := halotest.Case{
					Placement: v.Place, Links: v.Session.Links, Compiler: v.Session.Compiler, Path: path,
					Specs: []halo.Spec{v.spec(element, connectivity, width)},
				}
				name := fmt.Sprintf("exchange by %s of %s, width %d, %s: every point as geometry says", v.named(path),
					connected(connectivity), width, element)
				all = append(all, check{name, func(context.Context) error { return c.Run() }})
			}
		}
	}
	return all
}

// widths are those of ghosts that are exchanged: 1 and 2, and those of the problem where they are wider.
func (v *verifier) widths() []int {
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
		text += fmt.Sprintf(" with %d steps an exchange", w.group)
	}
	return text
}

// ways returns every scheme with its orders, and the steps between two exchanges of the config where it takes them;
// blocked with several too where these are one.
func (v *verifier) ways() (all []way) {
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
		of := *v.Problem
		of.Group = steps
		if v.Place.CheckWidth(of.Width()) == nil {
			return steps
		}
	}
	return 1
}

// runs returns the checks of every scheme and path against one device. A scheme that takes fewer devices is left out,
// and said.
func (v *verifier) runs(paths []p2p.Path) (all []check) {
	for _, way := range v.ways() {
		if err := way.scheme.Needs().CheckDevices(way.scheme, len(v.Place.Devices)); err != nil {
			fmt.Fprintf(v.out, "left out: scheme %v\n", err)
			continue
		}
		for _, path := range paths {
			if way.scheme.Needs().CheckPath(way.scheme, path) != nil {
				continue
			}
			name := fmt.Sprintf("scheme %v by %s: %d steps on %s give the bits of one", way, v.named(path), v.steps(),
				v.counted())
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
		if err := v.Place.Agree(ctx, "solve on one device", err); err != nil {
			return fmt.Errorf("on one device: %w", err)
		}
		v.solved = true
	}
	got, err := v.solve(ctx, v.Place, way, path)
	if err != nil || !v.team.speaks() {
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
func (v *verifier) one(ctx context.Context) ([]float64, error) {
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

// solve runs the problem and returns all owned points, on the process that speaks.
func (v *verifier) solve(ctx context.Context, place *halo.Placement, way way, path p2p.Path) (values []float64,
	err error) {
	p := *v.Problem
	p.Group = way.group
	plan, err := halo.NewPlan(place, v.Session.Links, path, p.Field())
	if err != nil {
		return nil, err
	}
	s, err := solvers.New(ctx, &p, plan, v.Session.Compiler)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	options := scheme.Options{Scheme: way.scheme, Order: way.order, Steps: int64(v.steps()),
		CheckEvery: int64(v.steps()), Limit: waitLimit}
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

// ranksSoak is for how long litmus tests of ranks run, and which one alone.
type ranksSoak struct {
	long time.Duration
	seed uint32 // 0: random ones
}

// soak runs litmus tests of ranks and prints how many.
func (v *verifier) soak(ctx context.Context, s ranksSoak) error {
	tests := litmus.Tests{Compiler: v.Session.Compiler, Links: v.Session.Links, Limit: waitLimit, Seed: s.seed}
	devices := v.devices()
	if n := len(devices); n > ranks.MaxDevices {
		fmt.Fprintf(v.out, "left out: all but the first %d of %d devices; ranks of more are not possible\n",
			ranks.MaxDevices, n)
		devices = devices[:ranks.MaxDevices]
	}
	done, err := tests.Soak(ctx, s.long, devices...)
	fmt.Fprintf(v.out, "litmus tests of ranks: %d turns of %d rounds in %v\n", done.Turns, done.Rounds,
		done.Took.Round(time.Millisecond))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; --ranks-seed runs it again", err)
	}
	return err
}

// devices returns those of the file, each once.
func (v *verifier) devices() (all []*streams.Device) {
	for _, d := range v.Place.Devices {
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// ranks returns the litmus tests of ranks: on each device, between the two of each pair, and among all. There are none
// where some device does not reach another, and none among all where these are too many. Of several processes they are
// among all devices.
func (v *verifier) ranks() (all []check) {
	if !v.team.IsAlone() {
		return v.ranksOfProcesses()
	}
	tests := litmus.Tests{Compiler: v.Session.Compiler, Links: v.Session.Links, Limit: waitLimit}
	devices := v.devices()
	for _, from := range devices {
		for _, to := range devices {
			if _, _, err := v.Session.Links.Choose(p2p.Direct, from, to, p2p.MessageShape{}); err != nil {
				fmt.Fprintf(v.out, "left out: ranks: %v\n", err)
				return nil
			}
		}
	}
	puts := func(of string, some ...*streams.Device) {
		name := "ranks of " + of + ": puts at every alignment come whole before their notification, tags are counted " +
			"apart"
		all = append(all, check{name, func(ctx context.Context) error {
			return errors.Join(tests.Puts(ctx, some...), tests.Counts(ctx, some...))
		}})
	}
	for i, d := range devices {
		puts(d.String(), d)
		for _, other := range devices[:i] {
			puts(fmt.Sprintf("%v and %v", other, d), other, d)
		}
	}
	if n := len(devices); n > ranks.MaxDevices {
		fmt.Fprintf(v.out, "left out: ranks of all %d devices; up to %d are possible\n", n, ranks.MaxDevices)
		return all
	}
	return append(all, among(tests, fmt.Sprintf("ranks of all %d devices: ", len(devices)), devices)...)
}

// among returns the tests in which all ranks of some devices take part.
func among(tests litmus.Tests, name string, devices []*streams.Device) []check {
	return []check{
		{name + "nobody leaves a barrier early, and what was stored before is seen",
			func(ctx context.Context) error { return tests.Barriers(ctx, devices...) }},
		{name + "one gets what all put to it at once",
			func(ctx context.Context) error { return tests.AllToOne(ctx, devices...) }},
	}
}

// ranksOfProcesses returns the tests among the devices of all processes, which end them together: none is given up when
// the command is interrupted.
func (v *verifier) ranksOfProcesses() (together []check) {
	p, devices, n := v.team.Processes, v.Session.Devices, 0
	for _, count := range v.Session.Counts() {
		n += count
	}
	if n > ranks.MaxDevices {
		fmt.Fprintf(v.out, "left out: ranks: %d devices of all processes; up to %d are possible\n", n, ranks.MaxDevices)
		return nil
	}
	tests := litmus.Tests{Compiler: v.Session.Compiler, Links: v.Session.Links, Processes: p, Limit: waitLimit}
	name := fmt.Sprintf("ranks of %d devices of %s: ", n, manyProcesses(p))
	all := append(among(tests, name, devices), check{name + "puts at every alignment come whole before their " +
		"notification, tags are counted apart", func(ctx context.Context) error {
		return errors.Join(tests.Puts(ctx, devices...), tests.Counts(ctx, devices...))
	}})
	for _, c := range all {
		together = append(together,
			check{c.name, func(ctx context.Context) error { return c.run(context.WithoutCancel(ctx)) }})
	}
	return together
}

func newVerifyCommand() *cobra.Command {
	var set []string
	var soak ranksSoak
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check exchanges and schemes on the devices, grid and cut of a config file",
		Long: `Check exchanges and schemes on the devices, grid and cut of a config file.

Verify poisons the ghosts of fields whose values say where they lie, exchanges
them over every path that the links have, and compares every point with what its
place says. Then it solves the problem of the file for up to 20 steps with every
scheme and path, and compares the result with that of one device, bit for bit. Schemes
that can make several steps between two exchanges make as many as the file says. Where
that is one, scheme blocked is also checked with up to 4. Where kernels reach each
other's memory, it also runs litmus tests of ranks: puts, their notifications and
barriers, on each device, between two and among all. A large grid is made smaller first,
and cut alike.

Started by mpirun, all processes check together: fields that they share, and the schemes that
run over several processes. Litmus tests of ranks are among the devices of all.

With --ranks-for it runs nothing but those litmus tests, one after the other for so long,
each with a random seed that chooses the test, the devices, the ranks and the data. The
first that fails ends it, and names its seed: --ranks-seed runs that one again.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("ranks-for") && soak.long == 0 {
				return errors.New("--ranks-for 0s: give a time above 0")
			}
			if cmd.Flags().Changed("ranks-seed") && soak.seed == 0 {
				return errors.New("--ranks-seed 0: give a seed above 0")
			}
			return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
				return verifyFile(cmd.Context(), g, out, notes, args[0], set, soak)
			})
		},
	}
	addSet(cmd, &set)
	cmd.Flags().DurationVar(&soak.long, "ranks-for", 0, "run litmus tests of ranks for so long, and nothing else")
	cmd.Flags().Uint32Var(&soak.seed, "ranks-seed", 0, "run the litmus test of ranks of this seed, and nothing else")
	cmd.MarkFlagsMutuallyExclusive("ranks-for", "ranks-seed")
	return cmd
}

// verifyFile is the command.
func verifyFile(ctx context.Context, g *processGroup, out, notes io.Writer, file string, set []string,
	soak ranksSoak) (err error) {
	if soak.long < 0 {
		return fmt.Errorf("--ranks-for %v is negative", soak.long)
	}
	if soak != (ranksSoak{}) {
		if err := g.checkAlone("--ranks-for", "its ranks are those of the devices of one process"); err != nil {
			return err
		}
	}
	config, err := g.config(ctx, func() (*configs.Run, error) {
		config, err := loadConfig(g.Size(), file, set)
		if err != nil {
			return nil, err
		}
		return config, checkProblem(ctx, file, config)
	})
	if err != nil {
		return err
	}
	w, err := newSetup(ctx, config, g.Processes, notes, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if soak != (ranksSoak{}) {
		w.printHead(out)
		return (&verifier{setup: w, team: g, out: out}).soak(ctx, soak)
	}
	full, parts := w.Place.Grid, w.Place.Parts
	if small := reduced(full, parts); small != full.Size {
		less, err := w.again(ctx, g, notes, file, append(set, smaller(full.Dims, small, parts)...))
		if err != nil {
			return err
		}
		w = less
	}
	w.printHead(out)
	if full.Size != w.Place.Grid.Size {
		fmt.Fprintf(out, "the grid of the file, %s, is too large to look at every point; this one is cut alike\n",
			times(full.Size[:full.Dims]))
	}
	v := &verifier{setup: w, team: g, out: out}
	checks, err := v.checks(ctx)
	if err != nil {
		return err
	}
	return v.report(ctx, append(checks, v.ranks()...))
}

// again plans the same file with other overrides, on the same devices.
func (w *setup) again(ctx context.Context, g *processGroup, notes io.Writer, file string, set []string) (*setup,
	error) {
	config, err := g.config(ctx, func() (*configs.Run, error) { return loadConfig(g.Size(), file, set) })
	if err != nil {
		return nil, err
	}
	return newSetupOn(ctx, w.Session, config, notes, false)
}

// verifyPoints is how many points a grid may have for every one to be looked at,
// many times.
const verifyPoints = 1 << 18

// reduced returns the size of the grid, halved along its longest axes until it has
// few enough points. Each part keeps four layers, or all it had.
func reduced(g domain.Grid, parts domain.Vec) domain.Vec {
	n := g.Size
	for n.Product() > verifyPoints {
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

// smaller returns the overrides of a config that give it another size and the same
// parts.
func smaller(dims int, size, parts domain.Vec) []string {
	list := func(key string, v []int) string {
		text := fmt.Sprintf("%s=[%d", key, v[0])
		for _, n := range v[1:] {
			text += fmt.Sprintf(",%d", n)
		}
		return text + "]"
	}
	return []string{list("grid.size", size[:dims]), list("decomposition", parts[:dims]), "output.slice=auto"}
}

// report makes all checks, prints a line for each, and their number. It is an error
// if one fails.
func (v *verifier) report(ctx context.Context, checks []check) error {
	failed, left := 0, 0
	for _, c := range checks {
		during(ctx, c.name, nil)
		if err := v.team.interrupted(ctx); err != nil {
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
			fmt.Fprintf(v.out, "--    %s: %v\n", c.name, err)
			continue
		}
		if err != nil {
			failed++
			fmt.Fprintf(v.out, "FAIL  %s: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(v.out, "ok    %s\n", c.name)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	fmt.Fprintf(v.out, "all %d checks hold\n", len(checks)-left)
	return nil
}
