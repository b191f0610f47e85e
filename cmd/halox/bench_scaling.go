package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/steps"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
)

func newBenchScalingCommand() *cobra.Command {
	var b benchFlags
	var o steps.ScalingOptions
	cmd := &cobra.Command{
		Use:   "scaling",
		Short: "Time a step on more and more devices, of one size in all or one size each",
		Long: `Time a step on more and more devices, of one size in all or one size each.

Strong scaling solves one problem, of --points along each axis, on more and more
devices: the speed-up is the time of a step on one device over that on n. Weak scaling
gives each device a cube of its own of so many points: they lie side by side, along the
grid's last axis first, and the speed-up is n times that. The efficiency is the speed-up
over n. Each scheme is held against itself: which is the fastest, their steps tell. Scheme
auto is that which halox run takes, the fastest on GPUs for each grid and number of
devices. One device is measured once for both modes. Where it is not among --devices, the
fewest count as ideal. With --exchange-steps 1,4 there is a curve for each number of steps
between two exchanges.

Steps are timed as by halox bench schemes. Ctrl-C ends the bench and keeps what it had;
--resume goes on from there.`,
		Example: `  halox bench scaling --record scaling.json
  halox plot scaling.json --where mode=strong --where precision=float64 -o strong.svg
  halox bench scaling --scheme two-stream,assisted --points 256,512 --mode strong
  halox bench scaling --scheme fused,blocked --exchange-steps 1,4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			leaveOpen(cmd.Flags(), "order", &o.Order)
			return b.runTogether(cmd, &o, b.most(largest(o.Devices)), benchOutput{})
		},
	}
	f := cmd.Flags()
	addStepFlags(f, &o.Options)
	f.StringSliceVar(&o.Schemes, "scheme", []string{"auto"}, "schemes, or auto")
	f.StringVar(&o.Order, "order", "left-right", "of two-stream: left-right or pairwise")
	f.StringVar(&o.Path, "path", "auto", p2p.Choices(p2p.Paths()))
	f.IntSliceVar(&o.Groups, "exchange-steps", []int{1}, fmt.Sprintf("steps between two exchanges, 1 to %d", solvers.MaxGroup))
	f.StringVar(&o.Mode, "mode", "both", "strong, weak or both")
	b.add(f)
	return cmd
}
