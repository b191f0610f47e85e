package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
)

// pingBench is what halox bench pingpong is asked for.
type pingBench struct {
	layoutBench
	devices        []int
	paths, engines []string
	fragment       int64
	ring           int
	remote         bool
	busy           float64
}

func newBenchPingPongCommand() *cobra.Command {
	var b pingBench
	cmd := &cobra.Command{
		Use:   "pingpong",
		Short: "Time MPI datatypes on their way from one device to another and back",
		Long: `Time MPI datatypes on their way from one device to another and back.

One device packs a layout and sends it; the other unpacks it as its receiver has
it, packs that, and sends it back. Times are of one way, half of a round trip, by
the host's clock: the median of batches of round trips that are queued and waited
for. Nothing but events orders the devices. Beside them stands a contiguous message
of as many bytes, by the driver's peer copy, with the same events. Rates count
packed bytes. What arrives is first compared with what the host packs and unpacks,
once a path, both ways, for each layout that spans no more than 64 MiB.

Streams of messages are urgent ones, as in halo exchanges. With --busy a stream of
either device runs a kernel of arithmetic, with some memory traffic, over and over
while times are taken, on that fraction of the thread blocks that can run at once
(on host devices: for that fraction of the time); the table says how much slower
that ran beside the best contender than alone.

Ctrl-C ends the bench between two measurements and keeps what it had.`,
		Example: `  halox bench pingpong --suites ddtbench --paths direct,peer,staged --record ddtbench.json
  halox bench pingpong --devices 0,0 --match wu/V/
  halox bench pingpong --match wu/V/n=2048 --busy 0.5 --fragment 1048576
  halox bench pingpong --figure wu-10 --plot wu-10.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := untilInterrupted(cmd.Context())
			defer release()
			b.settings = settingsOf(cmd.Flags())
			return b.start(ctx, cmd)
		},
	}
	b.addFlags(cmd)
	return cmd
}

func (b *pingBench) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	b.layoutBench.addFlags(f)
	f.IntSliceVar(&b.devices, "devices", []int{0, 1}, "the two devices, counted from 0; the same twice sends within it")
	f.StringSliceVar(&b.paths, "paths", []string{string(p2p.Direct), string(p2p.Peer)}, "paths: direct, peer, staged")
	f.StringSliceVar(&b.engines, "engine", []string{string(packing.Auto)}, "engines that pack and unpack: all, auto or the name of one")
	f.Int64Var(&b.fragment, "fragment", 0, "`bytes` of the fragments that messages go in; 0 for what suits")
	f.IntVar(&b.ring, "ring", 0, "fragments under way at once; 0 for what suits")
	f.BoolVar(&b.remote, "remote", false, "unpack from the sender's memory, over the link, with path peer")
	f.Float64Var(&b.busy, "busy", 0, "keep this `fraction` of each device busy with a kernel of something else")
	f.BoolVar(&b.noCheck, "no-check", false, "do not compare what arrives with what the host packs and unpacks")
	f.Lookup("plot").Usage = "draw bandwidth over packed size, the median of layouts of one size, or the figure, to this `file` (.png, .svg, .pdf)"
}

// start does what the flags say.
func (b *pingBench) start(ctx context.Context, cmd *cobra.Command) error {
	if b.figure == "list" {
		return listFigures(cmd.OutOrStdout(), pingFigures())
	}
	figure, err := b.check(cmd)
	if err != nil {
		return err
	}
	work, err := b.workloads(figure.shows)
	if err != nil {
		return err
	}
	if b.list {
		return listWorkloads(cmd.OutOrStdout(), work)
	}
	if err := b.hasAxis(&figure.axes, work); err != nil {
		return err
	}
	return b.run(ctx, figure, work, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// check refuses flags that make no sense, and returns the figure that they ask
// for: without --figure that of bandwidth over packed size.
func (b *pingBench) check(cmd *cobra.Command) (*pingFigure, error) {
	for _, wrong := range []error{
		b.layoutBench.check(),
		eachOf("paths", b.paths, string(p2p.Direct), string(p2p.Peer), string(p2p.Staged)),
		eachOf("engine", b.engines, engineNames()...),
		b.checkNumbers(),
	} {
		if wrong != nil {
			return nil, wrong
		}
	}
	f := b.generalFigure()
	if b.figure != "" {
		var err error
		if f, err = b.paperFigure(cmd); err != nil {
			return nil, err
		}
	}
	if b.remote && !slices.Contains(b.paths, string(p2p.Peer)) {
		return nil, fmt.Errorf("--remote is for path peer, which is not among --paths")
	}
	return f, nil
}

func (b *pingBench) checkNumbers() error {
	switch {
	case len(b.devices) != 2 || slices.Min(b.devices) < 0:
		return fmt.Errorf("--devices %s: name two devices, counted from 0, such as 0,1", commas(b.devices))
	case b.fragment < 0:
		return fmt.Errorf("--fragment %d: give a positive number of bytes, or 0 for what suits", b.fragment)
	case b.ring < 0:
		return fmt.Errorf("--ring %d: give a positive number, or 0 for what suits", b.ring)
	case !(b.busy >= 0 && b.busy <= 1):
		return fmt.Errorf("--busy %v: give a fraction from 0 to 1", b.busy)
	}
	return nil
}

// paperFigure returns the figure of that name, and takes what its paper did where the
// flags say nothing.
func (b *pingBench) paperFigure(cmd *cobra.Command) (*pingFigure, error) {
	f, err := findFigure(pingFigures(), b.figure)
	if err != nil {
		return nil, err
	}
	var own []string
	if f.engines != nil {
		own = append(own, "engine")
	}
	if err := b.fixed(&f.axes, cmd.Flags(), own...); err != nil {
		return nil, err
	}
	if f.engines != nil {
		b.engines = f.engines
	}
	if f.paths != nil && !cmd.Flags().Changed("paths") {
		b.paths = f.paths
	}
	return f, nil
}

// commas writes numbers as a flag takes them.
func commas(all []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]")
}

// channel is how a message travels: what contends in a ping-pong.
type channel struct {
	path   p2p.Path
	engine packing.Engine
	remote bool
}

// String names it as results do.
func (l channel) String() string { return l.row().Contender() }

// row begins the row of a channel.
func (l channel) row() results.Row {
	row := results.NewRow().Label("path", l.path)
	if l.remote {
		row = row.Label("remote", "yes")
	}
	return row.Label("engine", l.engine)
}

// channels returns those to be measured, each once. Of a path the driver's copies come last:
// the others are compared with them.
func (b *pingBench) channels() (all []channel) {
	engines := chosenEngines(b.engines)
	if slices.Contains(engines, packing.Copies) {
		engines = append(engines[1:], packing.Copies)
	}
	for _, path := range b.paths {
		for _, engine := range engines {
			l := channel{p2p.Path(path), engine, b.remote && path == string(p2p.Peer)}
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}

// run measures and prints the table. Interrupted or failed, it keeps what it had.
func (b *pingBench) run(ctx context.Context, figure *pingFigure, work []workloads.Workload, out, notes io.Writer) (err error) {
	m, err := openDevices(configs.Devices{Backend: b.backend, IDs: slices.Compact(slices.Clone(b.devices))}, notes)
	if err != nil {
		return fmt.Errorf("--backend %s --devices %s: %w", b.backend, commas(b.devices), err)
	}
	defer func() { err = errors.Join(err, m.close()) }() // with all that is on the devices
	r, record, err := b.newRun(ctx, m)
	if err != nil {
		return err
	}
	if err := b.begin(record); err != nil {
		return err
	}
	failure := b.measureAll(ctx, record, r.tasks(work), notes)
	return errors.Join(failure, record.WriteComparison(out, names(r.channels)), b.keep(record, figure, notes))
}

// newRun makes sure that all channels are open, and begins the record.
func (b *pingBench) newRun(ctx context.Context, m *opened) (*pingRun, *results.Record, error) {
	from, to := m.devices[0], m.devices[len(m.devices)-1]
	links, err := p2p.Discover(ctx, m.devices, m.topology())
	if err != nil {
		return nil, nil, err
	}
	r := &pingRun{
		from: from, to: to, compiler: kernels.CompilerFromEnv(), channels: b.channels(), check: !b.noCheck, budget: b.budget,
		packing:  packing.Options{Blocks: b.blocks},
		transfer: packing.TransferOptions{Fragment: b.fragment, Ring: b.ring},
	}
	r.route = results.NewRow().Label("from", from.ID).Label("to", to.ID)
	if link := links.Between(from, to); link != nil {
		r.route = r.route.Label("link", link.Kind)
	}
	r.route = r.route.Label("fragment", positive(b.fragment)).Label("ring", positive(b.ring)).
		Label("thread_blocks", positive(b.blocks)).Label("busy", positive(b.busy))
	for _, l := range r.channels {
		if err := r.passable(links, l); err != nil {
			return nil, nil, err
		}
	}
	b.settings["contenders"] = names(r.channels)
	if b.busy > 0 {
		if r.busy, err = newBusy(r.compiler, m.devices, b.busy); err != nil {
			return nil, nil, fmt.Errorf("--busy %v: %w", b.busy, err)
		}
		b.settings["busy"] = r.busy.describe()
	}
	return r, m.benchRecord(ctx, results.KindPingPong, b.settings, links), nil
}

// passable returns an error unless messages can go this channel in both directions.
func (r *pingRun) passable(links *p2p.Links, l channel) error {
	_, _, there := links.Choose(l.path, r.from, r.to, p2p.MessageShape{})
	_, _, back := links.Choose(l.path, r.to, r.from, p2p.MessageShape{})
	if err := errors.Join(there, back); err != nil {
		return fmt.Errorf("--paths %s: %w", l.path, err)
	}
	return nil
}

// keep writes the record and the plot that are wanted.
func (b *pingBench) keep(p *results.Record, figure *pingFigure, notes io.Writer) error {
	var err error
	if b.record != "" {
		err = p.Write(b.record)
	}
	return errors.Join(err, b.draw(figure.draw(p), notes))
}
