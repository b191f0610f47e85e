package scheme

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
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

// agreeCosts finds the costs of all subdomains together: all then divide their steps alike. All processes call it, also one that could
// not make its part ready, which says so later.
func (b *blocked) agreeCosts(made bool) error {
	for i, p := range b.parts {
		if i == 0 {
			b.costs = p.costs
		}
		b.costs.join(&p.costs)
	}
	if !b.shared() {
		return nil
	}
	var mine []byte
	if made {
		mine, _ = binary.Append(nil, binary.LittleEndian, &b.costs) // which is of numbers alone
	}
	all, err := b.place.Processes.Gather(context.Background(), "scheme: agree on what passes cost", mine)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if len(other) == 0 {
			continue
		}
		var c passCosts
		if err := binary.Read(bytes.NewReader(other), binary.LittleEndian, &c); err != nil {
			return fmt.Errorf("scheme: what passes cost %s: %w", b.place.Processes.Name(rank), err)
		}
		b.costs.join(&c)
	}
	return nil
}
