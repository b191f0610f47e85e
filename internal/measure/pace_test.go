package measure

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

// A batch of runs that each take so long, in microseconds; it keeps how many runs batches had.
type batches struct {
	one  float64
	runs []int
}

func (b *batches) run(n int) (float64, error) {
	b.runs = append(b.runs, n)
	return b.one, nil
}

// Batches are as long as they should be, with no fewer and no more runs than the pace has; what is
// very slow makes batches of fewer runs.
func TestPace(t *testing.T) {
	pace := Pace{First: 20, Max: 400, Batch: 4 * time.Millisecond}
	for _, tc := range []struct {
		name string
		one  float64 // us
		runs int     // of a batch
	}{
		{"fast", 1, 400}, {"some make a batch", 50, 80}, {"few do", 1000, 20}, {"slow", 1e6, 5}, {"slower than a batch may be", 1e7, 1},
	} {
		b := &batches{one: tc.one}
		s, err := pace.Measure(t.Context(), b.run)
		if last := b.runs[len(b.runs)-1]; err != nil || last != tc.runs || b.runs[0] != 1 || s.Median != tc.one || s.N < MinBatches || s.N > MaxBatches {
			t.Errorf("%s: batches of %v, %+v, %v", tc.name, b.runs, s, err)
		}
	}
}

// A pace ends with its context, and with the error of a batch.
func TestPaceEnds(t *testing.T) {
	pace := Pace{First: 2, Max: 8, Batch: time.Millisecond}
	for after := 1; after < 2+MinBatches; after++ {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := pace.Measure(ctx, func(int) (float64, error) {
			if n++; n == after {
				cancel()
			}
			return 1000, nil
		})
		cancel()
		if !errors.Is(err, context.Canceled) || n > after+1 {
			t.Errorf("%d batches after %d, %v", n, after, err)
		}
	}
	if _, err := pace.Measure(t.Context(), func(int) (float64, error) { return 0, io.EOF }); err != io.EOF {
		t.Error(err)
	}
}
