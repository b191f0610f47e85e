package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/steps"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/solvers"
)

func newBenchSchemesCommand() *cobra.Command {
	var b benchFlags
	var o steps.SchemesOptions
	cmd := &cobra.Command{
		Use:   "schemes",
		Short: "Time a step of every scheme over every path, on more and more devices",
		Long: `Time a step of every scheme over every path, on more and more devices.

Solves the heat equation on cubes, or squares with --dims 2, with every scheme,
path and order, in intervals of some 20 ms. At the ends of one all devices have done
their work, so that a step is timed in a steady run; a row is the median over intervals,
until that is known to a percent or --budget is spent. GFLOP/s count 8 operations a
point (6 with --dims 2), whatever the kernels do. Beside it stands the rate of a plain
copy within a device; share is what reading and writing each point once would have of
it, on each device. A row is compared with the baseline and with the best two-stream
scheme on as many devices, and with the best of one device.

With --norms n the change of every n-th step and its norms are taken too, and the host
looks at them, as in a run with a tolerance; rows are compared with those of the same.
Sums are fast ones, as those of other programs; --sums fast,reproducible adds rows with
the reproducible ones of a run that does not set stop.sums.

With --exchange-steps 1,2,4,8 schemes that can also make several steps between two
exchanges, on several devices; resident, whose tiles exchange within a device too, also
on one.

What a scheme, a link or the memory cannot do is left out, with a note in the record.
Ctrl-C ends the bench and keeps what it had.`,
		Example: `  halox bench schemes --record schemes.json
  halox plot schemes.json --where precision=float64 --where devices=4 -o schemes.svg
  halox bench schemes --dims 2 --schemes two-stream,assisted --paths peer --devices 4
  halox bench schemes --points 64,128 --exchange-steps 1,2,4,8
  halox bench schemes --points 1024,1536 --precisions float64 --cut slabs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.runTogether(cmd, &o, b.most(largest(o.Devices)), benchOutput{})
		},
	}
	f := cmd.Flags()
	addStepFlags(f, &o.Options)
	f.StringSliceVar(&o.Schemes, "schemes", steps.Schemes(), "schemes")
	f.IntSliceVar(&o.Norms, "norms", []int{0}, "take the norms of every n-th step; 0: of none")
	f.StringSliceVar(&o.Sums, "sums", []string{string(sums.Fast)}, "how norms are summed: reproducible, fast")
	f.IntSliceVar(&o.Groups, "exchange-steps", []int{1}, fmt.Sprintf("steps between two exchanges, 1 to %d, of schemes that take several", solvers.MaxGroup))
	f.StringSliceVar(&o.Paths, "paths", steps.Paths(), "paths: "+strings.Join(steps.Paths(), ", "))
	b.add(f)
	return cmd
}
