package bench

import (
	"context"

	"github.com/halox/halox/results"
)

// Task is a part of a benchmark that is measured as a whole: all of its rows come into the record,
// or none.
type Task struct {
	Labels  results.Row // what its rows have: a row that has them is one of its own
	Measure func(ctx context.Context) ([]results.Row, error)
}
