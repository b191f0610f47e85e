package results

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// Summary writes a short text about a finished run, one aligned line a subject.
// What the record doesn't know has no line. The problem is described by the keys
// solver, grid.size and precision of the settings. A record that is of no run is an
// error.
func (r *Record) Summary(w io.Writer) error {
	if r.Run == nil {
		return fmt.Errorf("results: write summary: a record of kind %q is of no run", r.Kind)
	}
	var text strings.Builder
	for _, line := range r.summaryLines() {
		if line.value != "" {
			fmt.Fprintf(&text, "%-10s %s\n", line.subject, line.value)
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("results: write summary: %w", err)
	}
	return nil
}

type summaryLine struct{ subject, value string }

func (r *Record) summaryLines() []summaryLine {
	run := r.Run
	lines := []summaryLine{
		{"problem", problemOf(r.Settings).String()},
		{"devices", r.deviceNames()},
		{"split", run.split()},
		{"scheme", run.schedule()},
		{"stopped", wording.Join(": ", run.ending(), run.bound(problemOf(r.Settings)))},
		{"failure", r.Failure},
		{"time", pair("reached", run.Time, "dt", run.DT)},
		{"change", pair("max", run.MaxChange, "l2", run.L2Change)},
		{"residual", named("max", run.Residual)},
		{"field", pair("max", run.MaxNorm, "rms", run.L2Norm)},
	}
	if run.Error != nil {
		lines = append(lines, summaryLine{"error", pair("max", run.Error.Max, "l2", run.Error.L2)})
	}
	return append(lines,
		summaryLine{"speed", run.speed()},
		summaryLine{"sweep", run.sweep()},
		summaryLine{"exchanged", wording.Prefixed(float64(run.BytesExchanged), "B")},
		summaryLine{"seconds", pair("setup", run.SetupSeconds, "loop", run.LoopSeconds)},
	)
}

func (r *Run) split() string {
	if r.Decomposition == [3]int{} {
		return ""
	}
	return wording.Times(r.Decomposition[:])
}

func (r *Run) schedule() string {
	text := wording.Join(" ", r.Scheme, r.Order)
	if r.Path != "" {
		text = wording.Join(" ", text, "over", r.Path)
	}
	if r.StepsAnExchange > 1 {
		text = fmt.Sprintf("%s, %d steps between two exchanges", text, r.StepsAnExchange)
	}
	return text
}

func (r *Run) ending() string {
	unit := "iterations"
	if r.Iterations == 1 {
		unit = "iteration"
	}
	switch r.Stopped {
	case StopTolerance:
		return fmt.Sprintf("tolerance reached after %d %s", r.Iterations, unit)
	case StopIterations:
		return fmt.Sprintf("all %d %s done", r.Iterations, unit)
	default:
		return fmt.Sprintf("%s after %d %s", r.Stopped, r.Iterations, unit)
	}
}

// bound says what the tolerance that ended a run bounds.
func (r *Run) bound(p problem) string {
	if r.Stopped != StopTolerance || p.Stop.Tolerance == 0 {
		return ""
	}
	what := map[string]string{"residual": "largest residual", "l2": "l2 norm of the change in a step"}[p.Stop.Norm]
	return fmt.Sprintf("%s at most %v", cmp.Or(what, "largest change in a step"), p.Stop.Tolerance)
}

func (r *Run) speed() string {
	if r.UpdatesPerSecond == nil {
		return ""
	}
	return wording.Prefixed(*r.UpdatesPerSecond, "point/s")
}

// pair shows up to two named numbers, to four digits, without those that are nil.
func pair(name1 string, v1 *float64, name2 string, v2 *float64) string {
	return wording.Join(", ", named(name1, v1), named(name2, v2))
}

func named(name string, v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%s %.4g", name, *v)
}

// sweep says by which thread blocks, and how long it took to find them.
func (r *Run) sweep() string {
	if r.Sweep == nil {
		return ""
	}
	text := fmt.Sprintf("blocks of %dx%d threads, %d layers each", r.Sweep.Block[0], r.Sweep.Block[1], r.Sweep.Layers)
	if s := r.Sweep.TuningSeconds; s != nil {
		text += fmt.Sprintf(", tuned in %.3f s", *s)
	}
	return text
}
