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
// solver, grid.size and precision of the config.
func (r *Record) Summary(w io.Writer) error {
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
	lines := []summaryLine{
		{"problem", problem(r.Config)},
		{"devices", r.deviceNames()},
		{"split", r.split()},
		{"scheme", r.schedule()},
		{"stopped", r.ending()},
		{"failure", r.Failure},
		{"time", pair("reached", r.Time, "dt", r.DT)},
		{"change", pair("max", r.MaxChange, "l2", r.L2Change)},
		{"field", pair("max", r.MaxNorm, "rms", r.L2Norm)},
	}
	if r.Error != nil {
		lines = append(lines, summaryLine{"error", pair("max", r.Error.Max, "l2", r.Error.L2)})
	}
	return append(lines,
		summaryLine{"speed", r.speed()},
		summaryLine{"sweep", r.sweep()},
		summaryLine{"exchanged", human(float64(r.BytesExchanged), "B")},
		summaryLine{"seconds", pair("setup", r.SetupSeconds, "loop", r.LoopSeconds)},
	)
}

// problem reads the few keys that name a problem out of a config of any type,
// by way of its JSON form. A config without them gives an empty text.
func problem(config any) string {
	var keys struct {
		Solver    string
		Precision string
		Grid      struct{ Size []int }
	}
	data, err := json.Marshal(config)
	if err != nil || json.Unmarshal(data, &keys) != nil {
		return ""
	}
	return join(", ", strings.TrimSpace(keys.Solver+" "+times(keys.Grid.Size)), keys.Precision)
}

// deviceNames counts devices of one name and backend, in order of appearance.
func (r *Record) deviceNames() string {
	var names []string
	count := map[string]int{}
	for _, device := range r.Devices {
		name := fmt.Sprintf("%s (%s)", device.Name, device.Backend)
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d x %s", count[name], name)
	}
	return strings.Join(names, ", ")
}

func (r *Record) split() string {
	if r.Decomposition == [3]int{} {
		return ""
	}
	return times(r.Decomposition[:])
}

func (r *Record) schedule() string {
	text := join(" ", r.Scheme, r.Order)
	if r.Path != "" {
		text = join(" ", text, "over", r.Path)
	}
	return text
}

func (r *Record) ending() string {
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

func (r *Record) speed() string {
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
func (r *Record) sweep() string {
	if r.Sweep == nil {
		return ""
	}
	text := fmt.Sprintf("blocks of %dx%d threads, %d layers each", r.Sweep.Block[0], r.Sweep.Block[1], r.Sweep.Layers)
	if s := r.Sweep.TuningSeconds; s != nil {
		text += fmt.Sprintf(", tuned in %.3f s", *s)
	}
	return text
}
