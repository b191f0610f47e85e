package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/interrupt"
	collect "github.com/halox/halox/internal/tracing"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// traceFlags are the flags of halox run that ask for a trace.
type traceFlags struct {
	file        string // "" for none
	steps, skip int64
}

// add adds the flags to a command's.
func (f *traceFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "trace", "",
		"write a trace of all streams to this JSON `file`, for Perfetto and halox plot")
	flags.Int64Var(&f.steps, "trace-steps", 20, "number of traced steps")
	flags.Int64Var(&f.skip, "trace-skip", 5, "number of steps before the traced steps; fewer in short runs")
}

// check rejects invalid values, and a scheme that cannot be traced.
func (f *traceFlags) check(flags *pflag.FlagSet, s string) error {
	switch {
	case f.file == "" && flags.Changed("trace-steps"):
		return errors.New("--trace-steps: needs --trace")
	case f.file == "" && flags.Changed("trace-skip"):
		return errors.New("--trace-skip: needs --trace")
	case f.steps < 1 || f.steps > streams.MaxTracedSteps:
		return fmt.Errorf("--trace-steps: must be between 1 and %d, got %d", streams.MaxTracedSteps, f.steps)
	case f.skip < 0:
		return fmt.Errorf("--trace-skip: must be at least 0, got %d", f.skip)
	case f.file != "" && s == string(scheme.Ranks):
		return fmt.Errorf("--trace: must not be set with exchange.scheme %s: its steps run inside kernels", s)
	}
	return nil
}

// beginTrace switches tracing on. The solver and the run make their streams later.
func (s *solverRun) beginTrace(f traceFlags) error {
	if f.file == "" {
		return nil
	}
	skip := min(f.skip, max(0, int64(s.config.Stop.Iterations)-f.steps))
	t := &tracing{file: f.file, window: streams.Window{First: skip + 1, Last: skip + f.steps}}
	var err error
	t.tracer, err = streams.NewTracer(s.ownDevices(), t.window)
	s.tracing = t
	return err
}

// endTrace writes the trace, a partial one if the run failed.
func (s *solverRun) endTrace(ctx context.Context, r *results.Record, failure error) error {
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
