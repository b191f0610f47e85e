package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/internal/bench/exchange"
	"github.com/halox/halox/internal/bench/links"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/ranks"
	"github.com/halox/halox/internal/bench/steps"
	"github.com/halox/halox/internal/bench/sweep"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/streams"
)

func newBenchCommand() *cobra.Command {
	cmd := newGroup("bench", "Measure what the devices and their links do")
	cmd.AddCommand(newBenchExchangeCommand(), newBenchPackCommand(), newBenchPingPongCommand(), newBenchLinksCommand(),
		newBenchLatencyCommand(), newBenchRanksCommand(), newBenchSweepCommand(), newBenchSchemesCommand(),
		newBenchScalingCommand())
	return cmd
}

func newBenchExchangeCommand() *cobra.Command {
	var b benchFlags
	var o exchange.Options
	var count int
	cmd := &cobra.Command{
		Use:   "exchange",
		Short: "Time halo exchanges of cubes of float64, all six faces, over every path",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 0 {
				return fmt.Errorf("--devices %d: give a number of devices, or 0 for all", count)
			}
			return b.run(cmd, &o, b.count(count), benchOutput{})
		},
	}
	f := cmd.Flags()
	f.IntVar(&count, "devices", 0, "how many devices; 0 for all")
	f.IntSliceVar(&o.Points, "points", []int{64, 128, 256}, "points a device, along each axis")
	f.IntSliceVar(&o.Radius, "radius", []int{1}, "ghost layers")
	f.IntSliceVar(&o.Fields, "fields", []int{1}, "fields exchanged together")
	f.StringSliceVar(&o.Paths, "paths", exchange.Paths(), "paths: "+strings.Join(exchange.Paths(), ", "))
	b.add(f)
	return cmd
}

func newBenchLatencyCommand() *cobra.Command {
	var b benchFlags
	var o links.LatencyOptions
	var devices []int
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Time the smallest pieces of work: launches, events, flags, small messages",
		Long: `Time the smallest pieces of work: launches, events, flags, small messages.

  issue a kernel    host time to queue an empty kernel
  kernel and wait   host time until one is queued and done
  kernel to kernel  device time from one to the next of many in a stream
  event and wait    host time until an event is queued and done, on an idle stream
  event to device   from an event of one device until a stream of another continues
  flag              from a running kernel to one on another device: a store over the
                    link, and a load that sees it
  message           8 bytes from one device to another, over each path, with the events
                    that order the two

Times between devices are halves of round trips. Those of events and messages are device
time, without the host's part. All are medians of batches.

Ctrl-C keeps what was measured; --resume continues.`,
		Example: `  halox bench latency --record latency.json --plot latency.svg`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDevices(devices); err != nil {
				return err
			}
			return b.run(cmd, &o, b.some(devices), benchOutput{alone: true})
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&devices, "devices", nil, "the devices, counted from 0; without it all GPUs, or four host devices")
	f.StringSliceVar(&o.Paths, "paths", links.Paths(), "paths of messages: "+strings.Join(links.Paths(), ", "))
	f.DurationVar(&o.Budget, "budget", 50*time.Millisecond, "how long to take for each measurement, about")
	b.add(f)
	return cmd
}

// layoutFlags are the flags of the benches of datatypes.
type layoutFlags struct {
	benchFlags
	list bool
}

func (l *layoutFlags) addTo(f *pflag.FlagSet, o *datatypes.Layouts) {
	f.StringSliceVar(&o.Suites, "suites", datatypes.Suites(), "suites of layouts")
	f.StringVar(&o.Match, "match", "", "only layouts whose name, suite/name/parameters, matches this `regexp`")
	f.Int64Var(&o.Least, "least", 0, "only layouts of at least so many packed `bytes`")
	f.Int64Var(&o.Most, "most", 0, "only layouts of at most so many packed `bytes`; 0 for no limit")
	f.BoolVar(&l.list, "list", false, "list the layouts, with their packed bytes, and measure nothing")
	f.IntVar(&o.Blocks, "blocks", 0, "most thread blocks that a kernel may take; 0 for as many as suit")
	f.DurationVar(&o.Budget, "budget", 20*time.Millisecond, "how long to take for each measurement of a layout")
	f.StringVar(&o.Over, "over", datatypes.PackedBytes, "draw over this `parameter` of the layouts, such as block")
	f.StringVar(&o.Figure, "figure", "", "measure and draw what a paper's figure shows, by its `name`; list prints "+
		"the names")
	l.add(f)
}

// listFigures is the value of --figure that lists them.
const listFigures = "list"

// printFigures prints the names and titles of the figures of a kind of record.
func printFigures(out io.Writer, kind results.Kind) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range datatypes.Figures() {
		if f.Of == kind {
			fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Title)
		}
	}
	return w.Flush()
}

// printLayouts prints names and packed bytes.
func printLayouts(out io.Writer, all []workloads.Workload, err error) error {
	for _, w := range all {
		if err == nil {
			_, err = fmt.Fprintln(out, w, w.Bytes)
		}
	}
	return err
}

// comparison prints the times of contenders in one table.
func comparison(contenders func() []string) func(w io.Writer, r *results.Record) error {
	return func(w io.Writer, r *results.Record) error {
		return bench.Measured(r).WriteComparison(w, contenders())
	}
}

// aboutLinks is the help of halox bench links.
const aboutLinks = `Time messages of all sizes between every two devices, over every path.

Path peer is the driver's peer copy, direct a kernel of the sender that stores into the
receiver's memory, staged a copy into pinned host memory and one out of it. Modes are
one-way; both-ways, whose rate is that of both messages; and, for three devices and more,
ring, each device to the next, and ring-both-ways, whose rate is what leaves a device.

Times are medians of batches of messages in a row, by the device's clock. A batch waits
behind a kernel until the host has queued all of it. In modes of several senders the clock
runs from the first to begin until all messages have arrived; noticing that takes 10 us.

The same run measures what bounds a path, as copy_time and copy_rate: the copy within the
sender's memory (path device) and, for staged, that to or from pinned memory (path pinned).

Each path between two devices is tried with random bytes first. One that corrupts them is
named and not timed, and the exit code is 1.

Started by mpirun, messages between the first devices of every two processes are timed by
the host's clock: path mpi, and path wire, which is MPI alone between host memories. Mode
ping-pong is half of a round trip. --network writes what halox plan --hosts takes.

Ctrl-C keeps what was measured; --resume continues.`

func newBenchLinksCommand() *cobra.Command {
	var b benchFlags
	var o links.Options
	var devices []int
	var sizes []string
	var network string
	cmd := &cobra.Command{
		Use:   "links",
		Short: "Time messages of all sizes between every two devices, over every path",
		Long:  aboutLinks,
		Example: `  halox bench links --record links.json --plot links.svg
  halox plot links.json --kind matrix -o matrix.svg
  mpirun -n 2 --host a,b halox bench links --network ours.yaml
  halox bench links --devices 0,1 --paths peer --modes one-way --sizes 1KiB,1MiB,256MiB`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkDevices(devices); err != nil {
				return err
			}
			if o.Sizes, err = option.Sizes("sizes", sizes); err != nil {
				return err
			}
			return b.run(cmd, &o, b.some(devices), withNetwork(&network))
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&devices, "devices", nil, "the devices, counted from 0; without it all GPUs, or four host devices")
	f.StringSliceVar(&sizes, "sizes", defaultSizes(), "sizes of messages")
	f.StringVar(&network, "network", "", "of several hosts: write what halox plan --hosts is to know of the network "+
		"to this `file`")
	addLinksOptions(f, &o)
	b.add(f)
	return cmd
}

// addLinksOptions adds the flags of what is measured.
func addLinksOptions(f *pflag.FlagSet, o *links.Options) {
	f.StringSliceVar(&o.Paths, "paths", links.Paths(), "paths: "+strings.Join(links.Paths(), ", "))
	f.StringSliceVar(&o.Modes, "modes", links.Modes(), "modes: one-way, both-ways, ring, ring-both-ways")
	f.DurationVar(&o.Budget, "budget", 36*time.Millisecond, "how long to take for each measurement, about")
}

// defaultSizes are the powers of 4 from 1 KiB to 256 MiB.
func defaultSizes() (all []string) {
	for bytes := int64(1 << 10); bytes <= 1<<28; bytes *= 4 {
		all = append(all, strings.ReplaceAll(streams.Size(bytes), " ", ""))
	}
	return all
}

func newBenchPackCommand() *cobra.Command {
	var l layoutFlags
	var o datatypes.PackOptions
	var device int
	cmd := &cobra.Command{
		Use:   "pack",
		Short: "Time the engines that pack MPI datatypes, on the layouts of benchmarks and papers",
		Long: `Time the engines that pack MPI datatypes, on the layouts of benchmarks and papers.

Every engine that supports a layout packs it on one device. The driver's contiguous copy of
as many bytes, and its 2-D and 3-D copies of the same layout (engine copies), are measured
too. Times are medians of batches, by the device's clock, with warm caches as in the papers.
Rates count packed bytes. What an engine writes is first compared with what the host packs,
once for each layout that spans at most 64 MiB.

Ctrl-C keeps what was measured.`,
		Example: `  halox bench pack --suites ddtbench --unpack --record ddtbench.json
  halox bench pack --match tempi/2d-vector/bytes=4194304 --over block --plot tempi.png
  halox bench pack --figure list
  halox bench pack --figure wu-8 --to pinned --plot wu-8.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Figure == listFigures {
				return printFigures(cmd.OutOrStdout(), results.KindPack)
			}
			f := cmd.Flags()
			leaveOpen(f, "suites", &o.Suites)
			leaveOpen(f, "over", &o.Over)
			leaveOpen(f, "engines", &o.Engines)
			leaveOpen(f, "to", &o.To)
			if l.list {
				work, err := o.List()
				return printLayouts(cmd.OutOrStdout(), work, err)
			}
			if err := checkDevice(device); err != nil {
				return err
			}
			return l.run(cmd, &o, l.named("device", []int{device}),
				benchOutput{alone: true, table: comparison(o.Contenders), chart: o.Draw})
		},
	}
	f := cmd.Flags()
	l.addTo(f, &o.Layouts)
	f.IntVar(&device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&o.Engines, "engines", []string{datatypes.AllEngines, "auto"},
		"engines: all, auto or the name of one")
	f.BoolVar(&o.Unpack, "unpack", false, "time unpacking too, of what the layout's receiver has")
	f.StringVar(&o.To, "to", datatypes.ToDevice, "where the packed bytes go, and are unpacked from: device memory, or "+
		"pinned host memory mapped into it (zero copy)")
	f.BoolVar(&o.NoCheck, "no-check", false, "do not compare what engines write with what the host packs")
	f.Lookup("plot").Usage = "draw bandwidth of packing over packed size, the median of layouts of one size, or the " +
		"figure, to this `file` (.png, .svg, .pdf)"
	return cmd
}

func newBenchPingPongCommand() *cobra.Command {
	var l layoutFlags
	var o datatypes.PingPongOptions
	var devices []int
	cmd := &cobra.Command{
		Use:   "pingpong",
		Short: "Time MPI datatypes on their way from one device to another and back",
		Long: `Time MPI datatypes on their way from one device to another and back.

One device packs a layout and sends it; the other unpacks it as its receiver has it, packs
that, and sends it back. Times are of one way, half of a round trip, by the host's clock:
medians of batches of queued round trips. A contiguous message of as many bytes, by the
driver's peer copy, is measured too. Rates count packed bytes. What arrives is first compared
with what the host packs and unpacks, for each layout that spans at most 64 MiB.

With --busy a stream of either device repeats a kernel of arithmetic and some memory traffic
on that fraction of the thread blocks that can run at once (on CPU devices: for that fraction
of the time); the table says how much the best contender slows it down.

Ctrl-C keeps what was measured.`,
		Example: `  halox bench pingpong --suites ddtbench --paths direct,peer,staged --record ddtbench.json
  halox bench pingpong --devices 0,0 --match wu/V/
  halox bench pingpong --match wu/V/n=2048 --busy 0.5 --fragment 1048576
  halox bench pingpong --figure wu-10 --plot wu-10.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Figure == listFigures {
				return printFigures(cmd.OutOrStdout(), results.KindPingPong)
			}
			f := cmd.Flags()
			leaveOpen(f, "suites", &o.Suites)
			leaveOpen(f, "over", &o.Over)
			leaveOpen(f, "engine", &o.Engines)
			leaveOpen(f, "paths", &o.Paths)
			if l.list {
				work, err := o.List()
				return printLayouts(cmd.OutOrStdout(), work, err)
			}
			if len(devices) != 2 || slices.Min(devices) < 0 {
				return fmt.Errorf("--devices %s: name two devices, counted from 0, such as 0,1", option.List(devices))
			}
			return l.run(cmd, &o, l.named("devices", devices),
				benchOutput{alone: true, table: comparison(o.Contenders), chart: o.Draw})
		},
	}
	f := cmd.Flags()
	l.addTo(f, &o.Layouts)
	f.IntSliceVar(&devices, "devices", []int{0, 1}, "the two devices, counted from 0; the same twice sends within it")
	addPingPongOptions(f, &o)
	f.Lookup("plot").Usage = "draw bandwidth over packed size, the median of layouts of one size, or the figure, to " +
		"this `file` (.png, .svg, .pdf)"
	return cmd
}

// addPingPongOptions adds the flags of how messages go.
func addPingPongOptions(f *pflag.FlagSet, o *datatypes.PingPongOptions) {
	f.StringSliceVar(&o.Paths, "paths", []string{"direct", "peer"},
		"paths: "+strings.Join(datatypes.PingPongPaths(), ", "))
	f.StringSliceVar(&o.Engines, "engine", []string{"auto"},
		"engines that pack and unpack: all, auto or the name of one")
	f.Int64Var(&o.Fragment, "fragment", 0, "`bytes` of the fragments that messages go in; 0 for what suits")
	f.IntVar(&o.Ring, "ring", 0, "fragments under way at once; 0 for what suits")
	f.BoolVar(&o.Remote, "remote", false, "unpack from the sender's memory, over the link, with path peer")
	f.Float64Var(&o.Busy, "busy", 0, "keep this `fraction` of each device busy with a kernel of something else")
	f.BoolVar(&o.NoCheck, "no-check", false, "do not compare what arrives with what the host packs and unpacks")
}

func newBenchRanksCommand() *cobra.Command {
	var b benchFlags
	var o ranks.Options
	var bytes, messages, vectors []string
	cmd := &cobra.Command{
		Use:   "ranks",
		Short: "Time thread blocks that put data into each other's memory and notify each other",
		Long: `Time thread blocks that put data into each other's memory and notify each other.

  latency      a notification, and messages of --bytes with one, between two ranks, on one
               device and on two: half of a round trip
  bandwidth    messages of --messages with a notification each, from all ranks of a device
               at once, to other ranks of it and to those of another
  barrier      of all ranks of one device, of two, and of all
  overlap      rounds in which each rank computes, exchanges a message with a rank of another
               device, and does both. --compute newton iterates for square roots, copy copies
               memory. With --apart 1 the ranks of a multiprocessor start staggered
  collectives  broadcast, reduce and allreduce of --vectors, on one device and on all, with
               the first and the last rank as roots
  channels     messages of --bytes, up to 4 KiB, back and forth and in a row
  proxy        the messages of latency and bandwidth between two GPUs by proxies on the host
  compare      a step of diffusion, and of particles whose messages change their lengths, by
               device ranks, by streams and events, and by graphs of these, on one device,
               two and all

All but latency, channels and compare use --per-multiprocessor ranks on each multiprocessor of a GPU.
Times are the device's, medians over launches.

Ctrl-C keeps what was measured; --resume continues.`,
		Example: `  halox bench ranks --record ranks.json
  halox plot ranks.json --kind ranks --where what=put\ and\ notify -o ranks.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Bytes, err = option.Sizes("bytes", bytes); err != nil {
				return err
			}
			if o.Messages, err = option.Sizes("messages", messages); err != nil {
				return err
			}
			if o.Vectors, err = option.Sizes("vectors", vectors); err != nil {
				return err
			}
			return b.run(cmd, &o, b.some(nil), benchOutput{alone: true})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.What, "what", ranks.Whats(), "what is measured: "+strings.Join(ranks.Whats(), ", "))
	f.StringSliceVar(&bytes, "bytes", []string{"8", "1KiB", "16KiB", "64KiB", "1MiB"}, "bytes of messages to and fro")
	f.StringSliceVar(&messages, "messages", []string{"8", "4KiB", "16KiB", "64KiB"},
		"bytes of messages of all ranks at once")
	f.StringSliceVar(&vectors, "vectors", []string{"8", "1KiB", "64KiB"}, "bytes of vectors of collectives, in doubles")
	f.StringSliceVar(&o.Compute, "compute", ranks.Computes(),
		"overlap: what a rank computes: "+strings.Join(ranks.Computes(), ", "))
	f.IntSliceVar(&o.Apart, "apart", []int{0, 1}, "overlap: whether ranks of one multiprocessor begin together, 0, or "+
		"apart, 1")
	f.IntSliceVar(&o.PerMultiprocessor, "per-multiprocessor", []int{1, 2, 4, 8}, "ranks on each multiprocessor")
	f.IntVar(&o.Threads, "threads", 128, "threads of a rank")
	f.DurationVar(&o.Budget, "budget", 50*time.Millisecond, "how long to take for each measurement, about")
	b.add(f)
	return cmd
}

func newBenchScalingCommand() *cobra.Command {
	var b benchFlags
	var o steps.ScalingOptions
	cmd := &cobra.Command{
		Use:   "scaling",
		Short: "Time a step on more and more devices, of one size in all or one size each",
		Long: `Time a step on more and more devices, of one size in all or one size each.

Strong scaling solves one problem, of --points along each axis, on more and more devices: the
speed-up is the time of a step on one device over that on n. Weak scaling gives each device a
cube of so many points, side by side along the grid's last axis first: the speed-up is n times
that. The efficiency is the speed-up over n. Each scheme is compared with itself. Scheme auto
is the one that halox run takes. Without 1 among --devices, the fewest count as ideal. With
--exchange-steps 1,4 there is a curve for each number of steps between two exchanges.

Steps are timed as by halox bench schemes. Ctrl-C keeps what was measured; --resume continues.`,
		Example: `  halox bench scaling --record scaling.json
  halox plot scaling.json --where mode=strong --where precision=float64 -o strong.svg
  halox bench scaling --scheme two-stream,assisted --points 256,512 --mode strong
  halox bench scaling --scheme fused,blocked --exchange-steps 1,4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			leaveOpen(cmd.Flags(), "order", &o.Order)
			return b.run(cmd, &o, b.most(largest(o.Devices)), benchOutput{})
		},
	}
	f := cmd.Flags()
	addStepFlags(f, &o.Options)
	f.StringSliceVar(&o.Schemes, "scheme", []string{"auto"}, "schemes, or auto")
	f.StringVar(&o.Order, "order", "left-right", "of two-stream: left-right or pairwise")
	f.StringVar(&o.Path, "path", "auto", p2p.Choices(p2p.Paths()))
	f.IntSliceVar(&o.Groups, "exchange-steps", []int{1},
		fmt.Sprintf("steps between two exchanges, 1 to %d", solvers.MaxGroup))
	f.StringVar(&o.Mode, "mode", "both", "strong, weak or both")
	b.add(f)
	return cmd
}

func newBenchSchemesCommand() *cobra.Command {
	var b benchFlags
	var o steps.SchemesOptions
	cmd := &cobra.Command{
		Use:   "schemes",
		Short: "Time a step of every scheme over every path, on more and more devices",
		Long: `Time a step of every scheme over every path, on more and more devices.

Solves the heat equation on cubes, or squares with --dims 2, with every scheme, path and order,
in intervals of some 20 ms between which all devices are idle. A row is the median over
intervals, until it is known to a percent or --budget is spent. GFLOP/s count 8 operations per
point (6 with --dims 2), whatever the kernels do. The share is that of the rate of a plain copy
within a device which reading and writing each point once would have. A row is compared with
the baseline and the best two-stream scheme on as many devices, and with the best of one device.

--norms n adds rows with the norms of every n-th step, as in a run with a tolerance. Their sums
are fast ones; --sums fast,reproducible adds the reproducible ones that a run has by default.
--exchange-steps 1,2,4,8 adds schemes that run several steps between two exchanges.

What a scheme, a link or the memory cannot do is left out, with a note in the record. Ctrl-C
keeps what was measured.`,
		Example: `  halox bench schemes --record schemes.json
  halox plot schemes.json --where precision=float64 --where devices=4 -o schemes.svg
  halox bench schemes --dims 2 --schemes two-stream,assisted --paths peer --devices 4
  halox bench schemes --points 64,128 --exchange-steps 1,2,4,8
  halox bench schemes --points 1024,1536 --precisions float64 --cut slabs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd, &o, b.most(largest(o.Devices)), benchOutput{})
		},
	}
	f := cmd.Flags()
	addStepFlags(f, &o.Options)
	f.StringSliceVar(&o.Schemes, "schemes", steps.Schemes(), "schemes")
	f.IntSliceVar(&o.Norms, "norms", []int{0}, "take the norms of every n-th step; 0: of none")
	f.StringSliceVar(&o.Sums, "sums", []string{string(sums.Fast)}, "how norms are summed: reproducible, fast")
	f.IntSliceVar(&o.Groups, "exchange-steps", []int{1}, fmt.Sprintf("steps between two exchanges, 1 to %d, of "+
		"schemes that take several", solvers.MaxGroup))
	f.StringSliceVar(&o.Paths, "paths", steps.Paths(), "paths: "+strings.Join(steps.Paths(), ", "))
	b.add(f)
	return cmd
}

// addStepFlags adds the flags of the benches that time steps of a solver.
func addStepFlags(f *pflag.FlagSet, o *steps.Options) {
	f.IntSliceVar(&o.Devices, "devices", nil, "numbers of devices (default 1, 2, 4, ... and all)")
	f.IntVar(&o.Dims, "dims", 3, "3 for cubes and the 7-point star, 2 for squares and the 5-point star")
	f.IntSliceVar(&o.Points, "points", nil, "points along each axis (default 64,128,256,512, or with --dims 2 "+
		"1024,4096,16384)")
	f.StringSliceVar(&o.Precisions, "precisions", []string{"float64", "float32"}, "float64, float32")
	f.StringVar(&o.Cut, "cut", "auto", "how the grid is cut: auto, or in slabs along its last axis, as in the paper")
	f.DurationVar(&o.Budget, "budget", time.Second, "how long one row is measured at most, without what comes before")
}

// largest returns the largest of some numbers, 0 if there are none.
func largest(all []int) int { return slices.Max(append([]int{0}, all...)) }

func newBenchSweepCommand() *cobra.Command {
	var b benchFlags
	var o sweep.Options
	var device int
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Time sweeps of stencils on one device, beside copies of the same bytes",
		Long: `Time sweeps of stencils on one device, beside copies of the same bytes.

A sweep reads one array and writes another; the next one goes back. The stencils are those of
stencil.points in a config, and 5-point-axes and 7-point-axes, which have a weight for each
axis. GFLOP/s count a product for each weight and a sum for each point but one. Rates count two
values per point, one read and one written, and so does the driver's copy of as many points.
With norms, a sweep takes those of the change and of the values, and they are sent to the host.
The shape of sweeps is tuned first.

Times are medians of batches, by the device's clock. On GPUs, what a sweep writes is compared
with what the host's kernels write, bit by bit, for grids of up to 4 million points.

Ctrl-C keeps what was measured; --resume continues.`,
		Example: `  halox bench sweep --record sweep.json --plot sweep.svg
  halox bench sweep --stencils 7-point --points-3d 128,256,512 --precision float64`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDevice(device); err != nil {
				return err
			}
			leaveOpen(cmd.Flags(), "points-2d", &o.Points2D)
			leaveOpen(cmd.Flags(), "points-3d", &o.Points3D)
			return b.run(cmd, &o, b.named("device", []int{device}), benchOutput{alone: true})
		},
	}
	f := cmd.Flags()
	f.IntVar(&device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&o.Stencils, "stencils", []string{"5-point", "7-point"},
		"stencils: "+strings.Join(sweep.Stencils(), ", "))
	f.IntSliceVar(&o.Points2D, "points-2d", sweep.Points(2), "points along each axis in two dimensions")
	f.IntSliceVar(&o.Points3D, "points-3d", sweep.Points(3), "points along each axis in three dimensions")
	f.StringSliceVar(&o.Precision, "precision", sweep.Precisions(), "float32, float64")
	f.StringSliceVar(&o.Norms, "norms", sweep.Norms(), "whether norms are taken: no, every-step")
	f.StringSliceVar(&o.Sums, "sums", []string{string(sums.Fast)}, "how norms are summed: reproducible, fast")
	f.DurationVar(&o.Budget, "budget", 100*time.Millisecond, "how long to take for each measurement, about")
	b.add(f)
	return cmd
}
