package results

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
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
		{"stopped", run.ending()},
		{"failure", r.Failure},
		{"time", pair("reached", run.Time, "dt", run.DT)},
		{"change", pair("max", run.MaxChange, "l2", run.L2Change)},
		{"field", pair("max", run.MaxNorm, "rms", run.L2Norm)},
	}
	if run.Error != nil {
		lines = append(lines, summaryLine{"error", pair("max", run.Error.Max, "l2", run.Error.L2)})
	}
	return append(lines,
		summaryLine{"speed", run.speed()},
		summaryLine{"sweep", run.sweep()},
		summaryLine{"exchanged", human(float64(run.BytesExchanged), "B")},
		summaryLine{"seconds", pair("setup", run.SetupSeconds, "loop", run.LoopSeconds)},
	)
}

// problem is the few settings that name a problem.
type problem struct {
	Solver    string
	Precision string
	Grid      struct{ Size []int }
}

// problemOf reads a problem out of settings of any type, by way of their JSON form.
// Of settings without one it is empty.
func problemOf(settings any) (p problem) {
	data, err := json.Marshal(settings)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return problem{}
	}
	return p
}

func (p problem) String() string {
	return join(", ", strings.TrimSpace(p.Solver+" "+times(p.Grid.Size)), p.Precision)
}

// deviceNames counts devices of one name and backend, in order of appearance.
func (r *Record) deviceNames() string {
	return counted(r.Devices, func(d Device) string { return fmt.Sprintf("%s (%s)", d.Name, d.Backend) })
}

// devicesCounted counts devices of one name.
func (r *Record) devicesCounted() string {
	return counted(r.Devices, func(d Device) string { return d.Name })
}

func counted(devices []Device, nameOf func(Device) string) string {
	var names []string
	count := map[string]int{}
	for _, device := range devices {
		name := nameOf(device)
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d x %s", count[name], name)
	}
	return strings.Join(names, ", ")
}

func (r *Run) split() string {
	if r.Decomposition == [3]int{} {
		return ""
	}
	return times(r.Decomposition[:])
}

func (r *Run) schedule() string {
	text := join(" ", r.Scheme, r.Order)
	if r.Path != "" {
		text = join(" ", text, "over", r.Path)
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

func (r *Run) speed() string {
	if r.UpdatesPerSecond == nil {
		return ""
	}
	return human(*r.UpdatesPerSecond, "point/s")
}

// pair shows up to two named numbers, to four digits, without those that are nil.
func pair(name1 string, v1 *float64, name2 string, v2 *float64) string {
	return join(", ", named(name1, v1), named(name2, v2))
}

func named(name string, v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%s %.4g", name, *v)
}

// human shows v to three digits with a decimal prefix, such as 1.23 Gpoint/s.
func human(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	step := 0
	for ; v >= 999.5 && step < len(prefixes)-1; step++ {
		v /= 1000
	}
	digits := 0
	if step > 0 {
		digits = decimals(v)
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + prefixes[step] + unit
}

// decimals is how many digits after the point show three digits of v in [1, 1000).
func decimals(v float64) int {
	switch {
	case v < 9.995:
		return 2
	case v < 99.95:
		return 1
	default:
		return 0
	}
}

// times writes sizes as 4 x 3 x 2.
func times(sizes []int) string {
	words := make([]string, len(sizes))
	for i, size := range sizes {
		words[i] = strconv.Itoa(size)
	}
	return strings.Join(words, " x ")
}

// join is strings.Join without the empty words.
func join(separator string, words ...string) string {
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return strings.Join(words, separator)
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
