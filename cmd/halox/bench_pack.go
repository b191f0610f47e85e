package main

import (
	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/datatypes"
	"github.com/halox/halox/results"
)

func newBenchPackCommand() *cobra.Command {
	var l layoutFlags
	var o datatypes.PackOptions
	var device int
	cmd := &cobra.Command{
		Use:   "pack",
		Short: "Time the engines that pack MPI datatypes, on the layouts of benchmarks and papers",
		Long: `Time the engines that pack MPI datatypes, on the layouts of benchmarks and papers.

Every engine that suits a layout packs it on one device, beside a contiguous copy
of as many bytes by the driver, and the driver's own copies in 2-D and 3-D of the
same layout (engine copies, always among the engines). Times are of the device,
from one job to the next of some that follow each other: the median of batches.
The same buffers are packed again and again, as in the papers, so that caches are
warm alike for all; what fits into them never comes from memory. Rates count
packed bytes. What an engine writes is first compared with what the host packs,
once for each layout that spans no more than 64 MiB.

Ctrl-C ends the bench between two measurements and keeps what it had.`,
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
			return l.run(cmd, &o, l.named("device", []int{device}), benchOutput{table: comparison(o.Contenders), chart: o.Draw})
		},
	}
	f := cmd.Flags()
	l.addTo(f, &o.Layouts)
	f.IntVar(&device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&o.Engines, "engines", []string{datatypes.AllEngines, "auto"}, "engines: all, auto or the name of one")
	f.BoolVar(&o.Unpack, "unpack", false, "time unpacking too, of what the layout's receiver has")
	f.StringVar(&o.To, "to", datatypes.ToDevice, "where the packed bytes go, and are unpacked from: device memory, or pinned host memory mapped into it (zero copy)")
	f.BoolVar(&o.NoCheck, "no-check", false, "do not compare what engines write with what the host packs")
	f.Lookup("plot").Usage = "draw bandwidth of packing over packed size, the median of layouts of one size, or the figure, to this `file` (.png, .svg, .pdf)"
	return cmd
}
