package packing

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// Clock compares the times of jobs of a device. Close frees it.
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
	maxRuns    = 400 // per batch
	maxGated   = 500 // queued operations behind a gate; streams hold a few more
	clockLimit = 60 * time.Second
)

// Batches returns the device time per run of each job, in their order, for each round. In each round every
// job runs one batch of consecutive runs, so that changing clocks and other load affect all jobs alike. The
// budget is the approximate total time of all batches of a job; each job runs a few times even if it takes
// longer. The jobs do their actual work, many times.
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

// once returns the approximate time of a job. After it the job is compiled and its data is on the device.
func (c *Clock) once(j *Job) (time.Duration, error) { return c.batch(j, 1, false) }

// medians returns the median over the rounds of each job.
//
// The median is used rather than the minimum because disturbances can also make a batch shorter, for example
// the clock of a GPU that was idle and is cool. With the minimum, the luckiest of seven batches would decide
// between similar engines; half of the rounds must be off to move the median.
func medians(all [][]time.Duration) (m []time.Duration) {
	for _, times := range all {
		m = append(m, slices.Sorted(slices.Values(times))[len(times)/2])
	}
	return m
}

// rounds runs the rounds. The times of once determine the number of runs per batch.
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

// batch runs the job a number of times and returns the mean time per run, at least 1 ns. One extra run comes
// first, so that cache contents left by the previous job do not count. If gated, all runs are queued before
// the first begins.
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

// Close frees the clock. Closing twice is not an error.
func (c *Clock) Close() error { return c.timer.Close() }
