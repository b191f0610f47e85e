package timing

import (
	"context"
	"time"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
)

// A median is over at least MinBatches batches, and over at most MaxBatches where fewer leave it
// uncertain by more than Within.
const (
	MinBatches = 9
	MaxBatches = 4 * MinBatches
	Within     = 0.01
)

// Pace says how long the batches of a median are.
type Pace struct {
	First, Max int           // runs of the first batch, and of any
	Batch      time.Duration // that a batch is to take
}

// maxFirst is how long the first batch may take, by what its first run takes: far less than Limit,
// for which a batch is waited for.
const maxFirst = 5 * time.Second

// Measure returns what the batches take: the time of one of n runs, in microseconds. All but
// MinBatches end with twice the time that these should take. Where the context ends, it returns the
// context's error.
func (p Pace) Measure(ctx context.Context, batch func(n int) (float64, error)) (results.Sample, error) {
	one, err := batch(1) // warms up
	if err != nil {
		return results.Sample{}, err
	}
	p.First = max(1, min(p.First, int(maxFirst.Seconds()*1e6/one)))
	n, err := p.runs(ctx, batch)
	if err != nil {
		return results.Sample{}, err
	}
	budget := measure.Budget{Min: MinBatches, Max: MaxBatches, Within: Within, Time: 2 * MinBatches * p.Batch}
	return measure.Repeat(ctx, budget, func() (float64, error) { return batch(n) })
}

// runs returns how many make a batch of that length. What a batch takes beside them makes few of
// them seem slow, so it looks again at more.
func (p Pace) runs(ctx context.Context, batch func(n int) (float64, error)) (int, error) {
	for n := p.First; ; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		one, err := batch(n)
		if err != nil {
			return 0, err
		}
		next := int(max(float64(p.First), min(float64(p.Max), p.Batch.Seconds()*1e6/one)))
		if next < 2*n {
			return next, nil
		}
		n = next
	}
}
