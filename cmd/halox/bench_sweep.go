package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/sweep"
	"github.com/halox/halox/kernels/sums"
)

func newBenchSweepCommand() *cobra.Command {
	var b benchFlags
	var o sweep.Options
	var device int
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Time sweeps of stencils on one device, beside copies of the same bytes",
		Long: `Time sweeps of stencils on one device, beside copies of the same bytes.

A sweep reads one array and writes another; the next one goes back. The stencils are
those of stencil.points in a config, and 5-point-axes and 7-point-axes, which have a
weight for each axis. GFLOP/s count a product for each weight and a sum for each point
but one: 6 for 5-point, 8 for 7-point. Rates count two values a point, one read and one written, and so does the
driver's copy of as many points from one array to the other, which stands beside. With
norms, a sweep takes those of the change and of the values on its way, and they are
sent to the host, as where every step is checked. The shape of sweeps is tuned first.

Times are those of the device, from one sweep to the next of some that were queued
before the first began: the median of batches. On GPUs, what a sweep writes is compared
with what the host's kernels write, bit by bit, for grids of up to 4 million points.

Ctrl-C ends the bench between two measurements and keeps what it had; --resume goes
on from there.`,
		Example: `  halox bench sweep --record sweep.json --plot sweep.svg
  halox bench sweep --stencils 7-point --points-3d 128,256,512 --precision float64`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDevice(device); err != nil {
				return err
			}
			leaveOpen(cmd.Flags(), "points-2d", &o.Points2D)
			leaveOpen(cmd.Flags(), "points-3d", &o.Points3D)
			return b.run(cmd, &o, b.named("device", []int{device}), benchOutput{})
		},
	}
	f := cmd.Flags()
	f.IntVar(&device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&o.Stencils, "stencils", []string{"5-point", "7-point"}, "stencils: "+strings.Join(sweep.Stencils(), ", "))
	f.IntSliceVar(&o.Points2D, "points-2d", sweep.Points(2), "points along each axis in two dimensions")
	f.IntSliceVar(&o.Points3D, "points-3d", sweep.Points(3), "points along each axis in three dimensions")
	f.StringSliceVar(&o.Precision, "precision", sweep.Precisions(), "float32, float64")
	f.StringSliceVar(&o.Norms, "norms", sweep.Norms(), "whether norms are taken: no, every-step")
	f.StringSliceVar(&o.Sums, "sums", []string{string(sums.Fast)}, "how norms are summed: reproducible, fast")
	f.DurationVar(&o.Budget, "budget", 100*time.Millisecond, "how long to take for each measurement, about")
	b.add(f)
	return cmd
}
