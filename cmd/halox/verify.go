package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/solvers/scheme"
)

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
			return takePart(cmd, func(l *launched, out, notes io.Writer) error {
				return verifyFile(cmd.Context(), l, out, notes, args[0], set, soak)
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
func verifyFile(ctx context.Context, l *launched, out, notes io.Writer, file string, set []string, soak ranksSoak) (err error) {
	if soak.long < 0 {
		return fmt.Errorf("--ranks-for %v is negative", soak.long)
	}
	if soak != (ranksSoak{}) {
		if err := l.alone("--ranks-for", "its ranks are those of the devices of one process"); err != nil {
			return err
		}
	}
	config, err := l.config(ctx, func() (*configs.Run, error) {
		config, err := loadConfigOf(l.size(), file, set)
		if err != nil {
			return nil, err
		}
		return config, checkProblem(ctx, file, config)
	})
	if err != nil {
		return err
	}
	w, err := openSetup(ctx, config, l.processes, notes, func(*setup) {})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if soak != (ranksSoak{}) {
		w.printHead(out)
		return (&verifier{setup: w, team: l, out: out}).soak(ctx, soak)
	}
	full, parts := w.place.Grid, w.place.Parts
	if small := reduced(full, parts); small != full.Size {
		less, err := w.again(ctx, l, file, append(set, smaller(full.Dims, small, parts)...))
		if err != nil {
			return err
		}
		w = less
	}
	w.printHead(out)
	if full.Size != w.place.Grid.Size {
		fmt.Fprintf(out, "the grid of the file, %s, is too large to look at every point; this one is cut alike\n", times(full.Size[:full.Dims]))
	}
	v := &verifier{setup: w, team: l, out: out}
	checks, err := v.checks(ctx)
	if err != nil {
		return err
	}
	return v.report(ctx, append(checks, v.ranks()...))
}

// again plans the same file with other overrides, on the same devices.
func (w *setup) again(ctx context.Context, l *launched, file string, set []string) (*setup, error) {
	config, err := l.config(ctx, func() (*configs.Run, error) { return loadConfigOf(l.size(), file, set) })
	if err != nil {
		return nil, err
	}
	return setUp(ctx, w.session, config)
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
		if err = v.place.Agree(ctx, c.name, err); err != nil && v.lost() {
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
