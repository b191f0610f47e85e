package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// While a benchmark goes on, the file has what there is, as of one that was interrupted.
func TestKeptFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "r.json")
		r := &results.Record{Kind: results.KindSweep}
		k := Recorder{Files: Files{Record: file}, Record: r}
		var tasks []Task
		for i := range 5 {
			labels := results.NewRow().Label("points", i)
			tasks = append(tasks, Task{labels, func(context.Context, *streams.Resources) ([]results.Row, error) {
				time.Sleep(saveEvery/2 + time.Second)
				if i == 4 {
					return nil, io.EOF
				}
				return []results.Row{labels.Number(results.Time, 1)}, nil
			}})
		}
		if err := k.Measure(t.Context(), tasks); !errors.Is(err, io.EOF) || r.Failure != "points 4: EOF" || len(r.Rows) != 4 {
			t.Errorf("%v: %+v", err, r)
		}
		kept, err := results.Read(file)
		if err != nil || len(kept.Rows) != 4 || !kept.Interrupted || r.Interrupted {
			t.Errorf("%v: %+v", err, kept)
		}
	})
}

// A benchmark that is interrupted keeps what it had.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &results.Record{Kind: results.KindSweep}
	row := results.NewRow().Label("points", 1)
	tasks := []Task{
		{row, func(context.Context, *streams.Resources) ([]results.Row, error) { return []results.Row{row}, nil }},
		{row.Label("points", 2), func(ctx context.Context, _ *streams.Resources) ([]results.Row, error) {
			cancel()
			return nil, ctx.Err()
		}},
		{row.Label("points", 3), nil},
	}
	if err := (&Recorder{Record: r}).Measure(ctx, tasks); !errors.Is(err, context.Canceled) || len(r.Rows) != 1 || !r.Interrupted || r.Failure != "" {
		t.Errorf("%v: %+v", err, r)
	}
}

// What does not fit into memory is left out with its reason, and the others are measured.
func TestTasksThatDoNotFit(t *testing.T) {
	r := &results.Record{Kind: results.KindExchange}
	row := results.NewRow()
	tasks := []Task{
		{row.Label("points", 9), func(context.Context, *streams.Resources) ([]results.Row, error) {
			return nil, fmt.Errorf("field: %w: too large", streams.ErrOutOfMemory)
		}},
		{row.Label("points", 1), func(context.Context, *streams.Resources) ([]results.Row, error) {
			return []results.Row{row.Label("points", 1).Number(results.Time, 1)}, nil
		}},
	}
	err := (&Recorder{Record: r}).Measure(t.Context(), tasks)
	if err != nil || len(r.Rows) != 2 || r.Failure != "" || len(Measured(r).Rows) != 1 {
		t.Fatalf("%v: %+v", err, r)
	}
	if left := r.Rows[0]; left.Text("points") != "9" || !strings.Contains(left.Note, "too large") {
		t.Errorf("left out: %+v", left)
	}
}
