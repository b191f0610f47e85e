package scheme

import (
	"math"
	"time"

	"github.com/halox/halox/kernels/temporal"
)

// passCosts are what passes cost over a sweep, by their depth: infinite where there are none.
type passCosts struct {
	Plain    [deepestPass + 1]float64
	Norms    [temporal.MostNorms + 1][deepestPass + 1]float64 // by of how many last steps they take norms; of one step that is a sweep
	Measured float64                                          // a sweep that takes norms
	Wait     float64                                          // of the device, for the host to look at norms before it queues the next pass
}

// deepestPass is the most steps of a pass.
const deepestPass = 32

// lookTime is about how long a device has nothing to do until the host has seen the end of a pass and queued the next, agreeTime that where
// processes agree in between.
const (
	lookTime  = 25 * time.Microsecond
	agreeTime = 100 * time.Microsecond
)

// newPassCosts returns those of sweeps alone.
func newPassCosts() (c passCosts) {
	for d := range c.Plain {
		c.Plain[d] = math.Inf(1)
		for n := range c.Norms {
			c.Norms[n][d] = math.Inf(1)
		}
	}
	c.Plain[1], c.Measured = 1, 1
	return c
}

// deepest returns the depth of the deepest passes.
func (c *passCosts) deepest() (depth int) {
	for d := range c.Plain {
		if !math.IsInf(c.Plain[d], 1) {
			depth = d
		}
		for n := range c.Norms {
			if !math.IsInf(c.Norms[n][d], 1) {
				depth = d
			}
		}
	}
	return depth
}

// join takes the greater of all costs: who waits for others is as slow as the slowest.
func (c *passCosts) join(o *passCosts) {
	for d := range c.Plain {
		c.Plain[d] = max(c.Plain[d], o.Plain[d])
		for n := range c.Norms {
			c.Norms[n][d] = max(c.Norms[n][d], o.Norms[n][d])
		}
	}
	c.Measured, c.Wait = max(c.Measured, o.Measured), max(c.Wait, o.Wait)
}
