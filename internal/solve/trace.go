package solve

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/halox/halox/internal/interrupt"
	collect "github.com/halox/halox/internal/tracing"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/streams"
)

// Trace says which steps are traced.
type Trace struct {
	File  string // of the trace; "" for none
	Steps int64  // number of traced steps
	Skip  int64  // steps before them, fewer in short runs
}

// beginTrace switches tracing on. The solver and the run make their streams later.
func (s *Run) beginTrace(f Trace) error {
	if f.File == "" {
		return nil
	}
	skip := min(f.Skip, max(0, int64(s.config.Stop.Iterations)-f.Steps))
	t := &tracing{file: f.File, window: streams.Window{First: skip + 1, Last: skip + f.Steps}}
	var err error
	t.tracer, err = streams.NewTracer(s.ownDevices(), t.window)
	s.tracing = t
	return err
}

// endTrace writes the trace, a partial one if the run failed.
func (s *Run) endTrace(ctx context.Context, r *results.Record, failure error) error {
	t := s.tracing
	if t == nil {
		return nil
	}
	traced := t.tracer.Trace()
	found, err := collect.Collect(traced, s.Place.Processes)
	t.found = found
	found.About = trace.About{
		Halox: r.Halox, Solver: s.config.Solver, Size: s.config.Grid.Size, Precision: s.config.Precision,
		Scheme: r.Run.Scheme, Order: r.Run.Order, Path: r.Run.Path, Lost: found.About.Lost,
	}
	broken := traced.Err()
	if failed := errors.Join(failure, broken); failed != nil {
		found.About.Failure = failed.Error()
	}
	if len(r.Networks) == 1 {
		found.About.Network = r.Networks[0].Name
	}
	if s.writes() {
		interrupt.Limit(ctx, interrupt.None)
		err = errors.Join(err, s.outputs.Put(t.output, found.Encode))
		s.limitWaits(ctx)
	}
	if failure == nil { // otherwise the failure has been reported
		err = errors.Join(broken, err, t.tracer.Close())
	}
	return err
}

// report prints how much of the communication of a run of steps was hidden, and the name of the file.
func (t *tracing) report(out io.Writer, steps int64) {
	if t == nil {
		return
	}
	text := t.found.HiddenText()
	switch {
	case !t.found.Traced() && steps >= t.window.First:
		text = fmt.Sprintf("nothing was traced: scheme %s runs many steps per launch", t.found.About.Scheme)
	case !t.found.Traced():
		text = fmt.Sprintf("nothing was traced: the run ended before step %d", t.window.First)
	case text == "":
		text = "no communication was traced"
	}
	fmt.Fprintf(out, "%-10s %s\n", "hidden", text)
	if n := t.found.About.Lost; n > 0 {
		fmt.Fprintf(out, "%-10s the trace lacks %d operations\n", "", n)
	}
	fmt.Fprintln(out, "wrote", t.file)
}
