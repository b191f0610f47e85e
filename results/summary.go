package results

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// Summary writes a short text about a finished run, one aligned line per subject; unknown properties have no
// line. The keys solver, grid.size and precision of the settings describe the problem. A record of another
// kind is an error.
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
	run, of := r.Run, problemOf(r.Settings)
	unit := of.unit(of.Stop.Field)
	lines := []summaryLine{
		{"problem", of.String()},
		{"devices", r.deviceNames()},
		{"subdomains", run.subdomains(len(of.Grid.Size))},
		{"scheme", run.schedule()},
		{"restarted", run.restarted()},
		{"faults", run.faults()},
		{"stopped", wording.Join(": ", run.ending(), run.bound(of))},
		{"failure", r.Failure},
		{"time", pair("reached", run.Time, "dt", run.DT, "")},
		{"time step", run.stability()},
		{"change", pair("max", run.MaxChange, "l2", run.L2Change, unit)},
		{"residual", named("max", run.Residual, "")},
		{"field", pair("max", run.MaxNorm, "rms", run.L2Norm, unit)},
	}
	for _, w := range run.Warnings {
		lines = append(lines, summaryLine{"warning", w})
	}
	for _, field := range slices.Sorted(maps.Keys(run.Errors)) {
		e := run.Errors[field]
		lines = append(lines, summaryLine{"error", field + ": " + wording.Join(", ", named("max", e.Max, of.unit(field)), named("l2", e.L2, ""))})
	}
	if run.Error != nil && run.Errors == nil {
		e := run.Error
		lines = append(lines, summaryLine{"error", wording.Join(", ", named("max", e.Max, unit), named("l2", e.L2, ""))})
	}
	for _, name := range slices.Sorted(maps.Keys(run.Measures)) {
		text := pair(name, run.Measures[name], "at the start", run.StartMeasures[name], of.unitOfMeasure(name))
		lines = append(lines, summaryLine{"measured", text})
	}
	for _, s := range run.Series {
		text := fmt.Sprintf("%d written in %.3g s, %s", s.Written, s.Seconds, wording.Prefixed(float64(s.Bytes), "B"))
		if s.Failed > 0 {
			text += fmt.Sprintf(", %d failed", s.Failed)
		}
		lines = append(lines, summaryLine{"series", s.File + ": " + text})
	}
	if len(run.Series) > 0 {
		lines = append(lines, summaryLine{"waited", fmt.Sprintf("steps %.3g s for series", *run.SeriesWaited)})
	}
	if run.Samples > 0 {
		lines = append(lines, summaryLine{"statistics", fmt.Sprintf("%d samples", run.Samples)})
	}
	return append(lines,
		summaryLine{"speed", run.speed()},
		summaryLine{"sweep", run.sweep()},
		summaryLine{"exchanged", wording.Prefixed(float64(run.BytesExchanged), "B")},
		summaryLine{"saved", run.Checkpoints.text()},
		summaryLine{"seconds", pair("setup", run.SetupSeconds, "loop", run.LoopSeconds, "")},
	)
}

// subdomains returns their number along each axis of a grid of dims dimensions, or of 3 if dims is 0.
func (r *Run) subdomains(dims int) string {
	if r.Decomposition == [3]int{} {
		return ""
	}
	return wording.Times(r.Decomposition[:min(cmp.Or(dims, 3), 3)])
}

func (r *Run) schedule() string {
	text := wording.Join(" ", r.Scheme, r.Order)
	if r.Path != "" {
		text = wording.Join(" ", text, "over", r.Path)
	}
	if r.StepsPerExchange > 1 {
		text = fmt.Sprintf("%s, %d steps between two exchanges", text, r.StepsPerExchange)
	}
	return text
}

// restarted describes the checkpoint from which the run continued.
func (r *Run) restarted() string {
	if r.RestartStep == nil {
		return ""
	}
	return fmt.Sprintf("from step %d", *r.RestartStep)
}

// faults describes the faults that the run has survived.
func (r *Run) faults() string {
	if len(r.Faults) == 0 {
		return ""
	}
	last := r.Faults[len(r.Faults)-1]
	text := fmt.Sprintf("%d, the last at step %d: %s", len(r.Faults), last.Step, last.Message)
	if left := len(last.Left); left < len(last.Devices) {
		text += fmt.Sprintf("; %d of %d devices left", left, len(last.Devices))
	}
	return text
}

// text describes the checkpoints.
func (c *Checkpoints) text() string {
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("%d checkpoints in %s", c.Written, c.Folder)
	if c.Step != nil {
		text += fmt.Sprintf(", the last at step %d", *c.Step)
	}
	for _, n := range []struct {
		count int
		what  string
	}{{c.Skipped, "skipped"}, {c.Failed, "failed"}, {c.Waited, "with steps waiting"}} {
		if n.count > 0 {
			text += fmt.Sprintf(", %d %s", n.count, n.what)
		}
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
	case StopWallTime:
		return fmt.Sprintf("the wall time was over after %d %s", r.Iterations, unit)
	case StopTime:
		return fmt.Sprintf("the time was reached after %d %s", r.Iterations, unit)
	case StopIterations:
		return fmt.Sprintf("all %d %s done", r.Iterations, unit)
	default:
		return fmt.Sprintf("%s after %d %s", r.Stopped, r.Iterations, unit)
	}
}

// stability describes the bound of the time step if terms may make a step near it unstable.
func (r *Run) stability() string {
	if len(r.IgnoredTerms) == 0 || r.DT == nil || r.StableDT == nil || *r.DT < *r.StableDT/2 {
		return ""
	}
	return fmt.Sprintf("stable up to %.4g, ignoring %s", *r.StableDT, strings.Join(r.IgnoredTerms, ", "))
}

// bound describes the quantity that the tolerance of a finished run bounds.
func (r *Run) bound(p problem) string {
	if r.Stopped != StopTolerance || p.Stop.Tolerance == 0 {
		return ""
	}
	what := map[string]string{"residual": "largest residual", "l2": "l2 norm of the change in a step"}[p.Stop.Norm]
	if what = cmp.Or(what, "largest change in a step"); p.Stop.Field != "" {
		what += " of " + p.Stop.Field
	}
	return fmt.Sprintf("%s at most %v", what, p.Stop.Tolerance)
}

func (r *Run) speed() string {
	if r.UpdatesPerSecond == nil {
		return ""
	}
	return wording.Prefixed(*r.UpdatesPerSecond, "point/s")
}

// pair formats up to two named numbers with their unit, to four digits, without those that are nil.
func pair(name1 string, v1 *float64, name2 string, v2 *float64, unit string) string {
	return wording.Join(", ", named(name1, v1, unit), named(name2, v2, unit))
}

func named(name string, v *float64, unit string) string {
	if v == nil {
		return ""
	}
	return wording.Join(" ", fmt.Sprintf("%s %.4g", name, *v), unit)
}

// sweep describes the thread blocks, and the time of tuning.
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
