package main

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// loadConfig loads the config of a number of processes, with overrides and the environment. File - is the standard
// input.
func loadConfig(ctx context.Context, processes int, file string, set []string) (c *configs.Run, err error) {
	o := configs.Options{
		Processes: processes, Set: set, Environ: os.Environ(),
		Warn: func(p configs.Problem) { command.Of(ctx).Warn(p) },
	}
	if file != "-" {
		c, err = configs.Load(file, o)
		return c, command.As(command.Config, err)
	}
	text, err := command.Of(ctx).Stdin()
	if err == nil {
		c, err = configs.Parse("standard input", text, o)
	}
	return c, command.As(command.Config, err)
}

// addSet adds the flag --set to a command, with completion of keys and values.
func addSet(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, "override a key of the config, as `key=value`; may be repeated")
	complete := func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return configs.Complete(begun),
			cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("set", complete); err != nil {
		panic(err) // the flag was added above
	}
}

// newProblem translates the config.
func newProblem(c *configs.Run) (*solvers.Problem, error) {
	var periodic [3]bool
	copy(periodic[:], c.Periodic())
	grid, err := domain.NewGrid(c.Grid.Size, periodic)
	if err != nil {
		return nil, err
	}
	p := &solvers.Problem{Grid: grid, Spacing: c.Spacing(), Real: kernels.Real(c.Precision), TimeStep: c.TimeStep(),
		Sums: sums.Mode(c.Stop.Sums), Group: max(1, int(c.Exchange.Steps))}
	kind := stencil.Kind{Points: c.Stencil.Points, Shape: stencil.Shape(c.Stencil.Shape)}
	if c.Heat != nil {
		p.Stencil, err = stencil.HeatOf(kind, p.Spacing, c.Heat.Diffusivity, p.TimeStep)
	} else {
		p.Stencil, err = stencil.LaplaceOf(kind, p.Spacing)
	}
	if err != nil {
		return nil, err
	}
	if p.Initial, err = stencil.Parse(c.Initial); err != nil {
		return nil, err
	}
	for i, face := range domain.Faces(grid.Dims) {
		if face.Axis() >= c.Dims() {
			p.Walls[i].Kind = solvers.Neumann // of a row of points, which no stencil looks across
			continue
		}
		if p.Walls[i], err = newWall(c.Boundary.Face(face.Axis(), i%2)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func newWall(f configs.Face) (solvers.Wall, error) {
	kind := f.Kind
	if !kind.HasValues() {
		return solvers.Wall{Kind: kind}, nil
	}
	value, err := stencil.Parse(f.Value)
	return solvers.Wall{Kind: kind, Value: value}, err
}

// waitLimit is how long a run waits for a device or a thread that makes no
// progress.
const waitLimit = 60 * time.Second

// solverOptions translates the config of a problem.
func solverOptions(c *configs.Run, p *solvers.Problem) scheme.Options {
	o := scheme.Options{
		Scheme:    scheme.Scheme(c.Exchange.Scheme),
		Order:     cmp.Or(scheme.Order(c.Exchange.Order), scheme.LeftRight),
		Steps:     int64(c.Stop.Iterations),
		Tolerance: c.Stop.Tolerance,
		Norm:      scheme.Norm(c.Stop.Norm),
		History:   c.Output.History,
		Limit:     waitLimit,
	}
	if o.Norm == configs.NormResidual {
		o.Norm, o.Tolerance = scheme.MaxNorm, o.Tolerance/p.ResidualScale()
	}
	if o.Tolerance > 0 || o.History {
		o.CheckEvery = int64(c.Stop.CheckEvery)
	}
	return o
}
