package packing

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// Clock times jobs of a device against each other. Close frees it.
type Clock struct{ timer *flags.Timer }

// NewClock makes a clock for jobs of packers of the device.
func NewClock(c *kernels.Compiler, d *streams.Device) (*Clock, error) {
	t, err := flags.NewGatedTimer(c, d, clockLimit, clockLimit)
	if err != nil {
		return nil, err
	}
	return &Clock{t}, nil
}

const (
	rounds     = 7
	maxRuns    = 400 // of a batch
	maxGated   = 500 // operations that are queued behind a gate: streams hold some more
	clockLimit = 60 * time.Second
)

// Batches returns how long each of the jobs takes on the device, in their order, from one run
// to the next of some that follow each other, once for each round. The jobs take turns, a batch of runs each,
// for some rounds, so that a clock that slows down or a neighbour who comes and goes hits
// all of them alike. The budget is what all batches of a job take together, about; each
// job runs some times even if it takes longer. The jobs do their work, many times.
func (c *Clock) Batches(budget time.Duration, jobs ...*Job) ([][]time.Duration, error) {
	var ones []time.Duration
	for _, j := range jobs {
		one, err := c.once(j)
		if err != nil {
			return nil, err
		}
		ones = append(ones, one)
	}
	return c.rounds(budget, jobs, ones)
}

// once returns what a job takes, roughly. It has run then: it is compiled, and what it
// needs is on the device.
func (c *Clock) once(j *Job) (time.Duration, error) { return c.batch(j, 1, false) }

// medians returns those of the rounds of each job.
//
// The median it is, and not the shortest batch: what disturbs a batch may make it shorter,
// too, as a GPU's clock does that was idle and is cool. The luckiest of seven decides for
// one or the other of two engines that are alike; half of the rounds have to be off to move
// the median.
func medians(all [][]time.Duration) (m []time.Duration) {
	for _, times := range all {
		m = append(m, slices.Sorted(slices.Values(times))[len(times)/2])
	}
	return m
}

// rounds runs the rounds. What once returned says how many runs fit into a batch.
func (c *Clock) rounds(budget time.Duration, jobs []*Job, ones []time.Duration) ([][]time.Duration, error) {
	all := make([][]time.Duration, len(jobs))
	for range rounds {
		for i, j := range jobs {
			runs := max(1, min(maxRuns, int(budget/rounds/ones[i]), maxGated/j.operations()-1))
			took, err := c.batch(j, runs, (runs+1)*j.operations() <= maxGated)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], took)
		}
	}
	return all, nil
}

// batch runs the job so many times and returns the mean time of a run, at least 1 ns. One more run comes before: what
// the job before left in the caches must not count. If gated, all runs are queued before the first begins.
func (c *Clock) batch(j *Job, runs int, gated bool) (time.Duration, error) {
	queue := func() error { return j.Queue(c.timer.Stream) }
	took, err := c.timer.Time(gated, queue, func() error {
		for range runs {
			if err := queue(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("packing: time engine %s: %w", j.Engine, err)
	}
	return max(1, took/time.Duration(runs)), nil
}

// Close frees its memory. Closing twice is not an error.
func (c *Clock) Close() error { return c.timer.Close() }
