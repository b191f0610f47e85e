package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A Budget limits the number and the time of measurements.
type Budget struct {
	Warm int           // runs before the first measurement
	Min  int           // minimum number of measurements, unless the context ends
	Max  int           // maximum number of measurements; 0: only Time limits them
	Time time.Duration // time after which none begins; 0: only Max limits them
	// measurements end when the confidence interval of the median is within this fraction of it; 0: use the whole
	// budget
	Within float64
}

var errEndless = errors.New("measure: a budget needs Max or Time, or it never ends")

// Repeat warms up and then calls once, until the median is known to Budget.Within or the budget is spent. If the
// context ends, or once returns an error or a non-finite number, it returns the measurements so far with the error.
func Repeat(ctx context.Context, b Budget, once func() (float64, error)) (Sample, error) {
	if b.Max <= 0 && b.Time <= 0 {
		return Sample{}, errEndless
	}
	for range b.Warm {
		if _, err := measured(ctx, once); err != nil {
			return Sample{}, err
		}
	}
	var all []float64
	start := time.Now()
	for next := 0; !b.spent(len(all), start); {
		v, err := measured(ctx, once)
		if err != nil {
			return sorted(all), err
		}
		i, _ := slices.BinarySearch(all, v)
		all = slices.Insert(all, i, v)
		if n := len(all); b.Within > 0 && n >= max(b.Min, next) {
			if sorted(all).Converged(b.Within) {
				break
			}
			next = n + 1 + n/10 // a check takes as long as several fast measurements
		}
	}
	return sorted(all), nil
}

// spent reports whether the budget is used up after n measurements.
func (b Budget) spent(n int, start time.Time) bool {
	if n < max(1, b.Min) {
		return false
	}
	return b.Max > 0 && n >= b.Max || b.Time > 0 && time.Since(start) >= b.Time
}

func measured(ctx context.Context, once func() (float64, error)) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	v, err := once()
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = fmt.Errorf("measure: a measurement must be finite, got %v", v)
	}
	return v, err
}

// A median is over at least MinBatches batches, and at most MaxBatches if it is less certain than Within.
const (
	MinBatches = 9
	MaxBatches = 4 * MinBatches
	Within     = 0.01
)

// Pace sets the duration of the batches of a median.
type Pace struct {
	First, Max int           // runs of the first batch, and maximum runs
	Batch      time.Duration // target duration of a batch
}

// maxFirst is the maximum duration of the first batch, estimated from its first run: far less than the time limit of a
// batch.
const maxFirst = 5 * time.Second

// Measure returns the sample of the results of batches: the time of one of n runs, in microseconds. After MinBatches no
// batch begins later than twice their target duration. If the context ends, Measure returns the context's error.
func (p Pace) Measure(ctx context.Context, batch func(n int) (float64, error)) (Sample, error) {
	one, err := batch(1) // warms up
	if err != nil {
		return Sample{}, err
	}
	p.First = max(1, min(p.First, int(maxFirst.Seconds()*1e6/one)))
	n, err := p.runs(ctx, batch)
	if err != nil {
		return Sample{}, err
	}
	budget := Budget{Min: MinBatches, Max: MaxBatches, Within: Within, Time: 2 * MinBatches * p.Batch}
	return Repeat(ctx, budget, func() (float64, error) { return batch(n) })
}

// runs returns the number of runs that take the target duration of a batch. The overhead of a batch makes few runs seem
// slow, so it measures again with more.
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
