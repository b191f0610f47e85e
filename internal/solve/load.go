package solve

import (
	"context"
	"os"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// Load loads the config of a number of processes, with overrides and the environment. File - is the standard
// input.
func Load(ctx context.Context, processes int, file string, set []string) (c *configs.Run, err error) {
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

// WaitLimit is how long a run waits for a device or a thread that makes no
// progress.
const WaitLimit = 60 * time.Second

// solverOptions translates the config of a problem.
func solverOptions(c *configs.Run, p *solvers.Problem) scheme.Options {
	o := scheme.Options{
		Scheme:    scheme.Scheme(c.Exchange.Scheme),
		Order:     scheme.Order(c.Exchange.Order),
		Steps:     int64(c.Stop.Iterations),
		Tolerance: c.Stop.Tolerance,
		Norm:      scheme.Norm(c.Stop.Norm),
		History:   c.Output.History,
		Limit:     WaitLimit,
	}
	if o.Norm == configs.NormResidual {
		o.Norm, o.Tolerance = scheme.MaxNorm, o.Tolerance/p.ResidualScale()
	}
	if o.Tolerance > 0 || o.History {
		o.CheckEvery = int64(c.Stop.CheckEvery)
	}
	return o
}
