package main

import (
	"cmp"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/solvers/scheme"
)

// waitLimit is how long a run waits for a device or a thread that makes no
// progress.
const waitLimit = 60 * time.Second

// solverOptions translates the config.
func solverOptions(c *configs.Run) scheme.Options {
	o := scheme.Options{
		Scheme:    scheme.Scheme(c.Exchange.Scheme),
		Order:     cmp.Or(scheme.Order(c.Exchange.Order), scheme.LeftRight),
		Steps:     int64(c.Stop.Iterations),
		Tolerance: c.Stop.Tolerance,
		Norm:      scheme.Norm(c.Stop.Norm),
		History:   c.Output.History,
		Limit:     waitLimit,
	}
	if o.Tolerance > 0 || o.History {
		o.CheckEvery = int64(c.Stop.CheckEvery)
	}
	return o
}
