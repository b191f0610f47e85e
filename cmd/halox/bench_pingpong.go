package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/results"
)

func newBenchPingPongCommand() *cobra.Command {
	var l layoutFlags
	var o datatypes.PingPongOptions
	var devices []int
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
			return l.run(cmd, &o, l.named("devices", devices), benchOutput{table: comparison(o.Contenders), chart: o.Draw})
		},
	}
	f := cmd.Flags()
	l.addTo(f, &o.Layouts)
	f.IntSliceVar(&devices, "devices", []int{0, 1}, "the two devices, counted from 0; the same twice sends within it")
	addPingPongOptions(f, &o)
	f.Lookup("plot").Usage = "draw bandwidth over packed size, the median of layouts of one size, or the figure, to this `file` (.png, .svg, .pdf)"
	return cmd
}

// addPingPongOptions adds the flags of how messages go.
func addPingPongOptions(f *pflag.FlagSet, o *datatypes.PingPongOptions) {
	f.StringSliceVar(&o.Paths, "paths", []string{"direct", "peer"}, "paths: "+strings.Join(datatypes.PingPongPaths(), ", "))
	f.StringSliceVar(&o.Engines, "engine", []string{"auto"}, "engines that pack and unpack: all, auto or the name of one")
	f.Int64Var(&o.Fragment, "fragment", 0, "`bytes` of the fragments that messages go in; 0 for what suits")
	f.IntVar(&o.Ring, "ring", 0, "fragments under way at once; 0 for what suits")
	f.BoolVar(&o.Remote, "remote", false, "unpack from the sender's memory, over the link, with path peer")
	f.Float64Var(&o.Busy, "busy", 0, "keep this `fraction` of each device busy with a kernel of something else")
	f.BoolVar(&o.NoCheck, "no-check", false, "do not compare what arrives with what the host packs and unpacks")
}
