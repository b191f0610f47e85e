package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/plan"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/internal/verify"
)

// verifySteps is the largest number of steps that verify solves the problem for.
const verifySteps = 20

// verifyFlags are the flags of halox verify.
type verifyFlags struct {
	set  []string
	long time.Duration // of litmus tests alone
	seed uint32        // of the litmus test to run alone
}

func newVerifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check exchanges and schemes on the devices, grid and decomposition of a config file",
		Long: `Check exchanges and schemes on the devices, grid and decomposition of a config file.

Verify runs exchanges over every path, and checks every point against its coordinates.
It solves the problem of the file for up to 20 steps with every scheme and path, and
compares the fields with those of one device, bit for bit. Under mpirun, all processes
check together.

--ranks-for runs only litmus tests of device ranks, with random seeds. A failure prints
its seed, and --ranks-seed repeats that test. See docs/how-to/benchmark-a-machine.md.`,
		Example: `  halox verify heat3d.yaml
  halox verify heat3d.yaml --set devices.count=2 --json
  halox verify heat3d.yaml --ranks-for 10m`,
		Args: command.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("ranks-for") && f.long == 0:
				return command.As(command.Usage, errors.New("--ranks-for: must be above 0, got 0s"))
			case f.long < 0:
				return command.As(command.Usage, fmt.Errorf("--ranks-for: must be above 0, got %v", f.long))
			case cmd.Flags().Changed("ranks-seed") && f.seed == 0:
				return command.As(command.Usage, errors.New("--ranks-seed: must be above 0, got 0"))
			}
			return runTogether(cmd, func(g *processGroup, out, notes io.Writer) error {
				return f.verify(cmd.Context(), g, out, notes, args[0])
			})
		},
	}
	addSet(cmd, &f.set)
	cmd.Flags().DurationVar(&f.long, "ranks-for", 0, "run only litmus tests of device ranks, for this long")
	cmd.Flags().Uint32Var(&f.seed, "ranks-seed", 0, "run only the litmus test of device ranks with this seed")
	cmd.MarkFlagsMutuallyExclusive("ranks-for", "ranks-seed")
	return cmd
}

// verify runs the command as one of a group of processes.
func (f *verifyFlags) verify(ctx context.Context, g *processGroup, out, notes io.Writer, file string) (err error) {
	litmusOnly := f.long > 0 || f.seed > 0
	if litmusOnly {
		if err := g.checkAlone("--ranks-for", "it uses the devices of one process"); err != nil {
			return err
		}
	}
	load := func(set ...string) (*configs.Run, error) {
		return g.config(ctx, func() (*configs.Run, error) {
			return solve.Load(ctx, g.Size(), file, append(f.set, set...))
		})
	}
	config, err := load()
	if err != nil {
		return err
	}
	w, err := solve.OpenConfig(ctx, config, g.Processes, notes, false)
	if err == nil {
		opened := w
		defer func() { err = errors.Join(err, solve.Close(opened)) }()
		err = w.Place.Agree(ctx, "check the config", solve.CheckValues(ctx, config, w.Problem))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	full := w.Place.Grid
	if small := verify.Reduced(full, w.Place.Parts); small != full.Size && !litmusOnly {
		if config, err = load(smaller(full.Dims, small, w.Place.Parts)...); err != nil {
			return err
		}
		if w, err = solve.OpenOn(ctx, w.Session, config, notes, false); err != nil {
			return err
		}
	}
	plan.PrintHead(out, w, config.Solver)
	if full.Size != w.Place.Grid.Size {
		fmt.Fprintf(out, "the grid of the file, %v, is too large to check every point; this has the same decomposition\n",
			full.Size[:len(w.Problem.Spacing)])
	}
	v := &verify.Verifier{
		Setup: w, Steps: min(config.Stop.Iterations, verifySteps), Limit: solve.WaitLimit,
		Out:    command.Of(ctx).Verdicts(out),
		During: func(doing string) { interrupt.During(ctx, doing, nil) },
	}
	if litmusOnly {
		return command.As(command.CheckFailed, v.Soak(ctx, f.long, f.seed))
	}
	err = v.All(ctx)
	if errors.Is(err, context.Canceled) {
		err = interrupt.ErrInterrupted
	} else if errors.Is(err, verify.ErrFailed) {
		err = command.As(command.CheckFailed, err)
	}
	if g.speaks() {
		err = errors.Join(err, command.Of(ctx).PrintJSON(v.Done))
	}
	return err
}

// smaller returns the overrides of a config for another size and the same decomposition.
func smaller(dims int, size, parts domain.Vec) []string {
	list := func(v []int) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ",") }
	return []string{
		"grid.size=" + list(size[:dims]), "decomposition=" + list(parts[:dims]), "output.slice=auto",
	}
}
