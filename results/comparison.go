package results

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// WriteComparison writes what a bench of datatypes measured as a comparison: a line a workload, a
// column a contender, in the order given; a table for each direction and suite; and
// after those of a direction how the contenders did. Without rows it writes nothing.
func (r *Record) WriteComparison(w io.Writer, contenders []string) error {
	var text strings.Builder
	byDirection := map[string][]Group{}
	for _, g := range r.Groups() {
		direction := g.Rows[0].Text("direction")
		byDirection[direction] = append(byDirection[direction], g)
	}
	for _, direction := range []string{"", Packed, Unpacked} {
		if groups := byDirection[direction]; len(groups) > 0 {
			if text.Len() > 0 {
				fmt.Fprintln(&text)
			}
			c := comparison{contenders, groups}
			fmt.Fprintf(&text, "%s\n\n", r.comparisonCaption(groups[0].Rows[0]))
			c.write(&text)
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("results: write table: %w", err)
	}
	return nil
}

// comparisonCaption says what the tables hold whose first row this is.
func (r *Record) comparisonCaption(first Row) string {
	if first.Text("path") != "" {
		what := "ping-pong between "
		if first.Text("from") == first.Text("to") {
			what = "ping-pong on "
		}
		return what + wording.Join(", ", r.Between(), first.Limits(), "times of one way in us")
	}
	where := "device memory"
	if first.Text("memory") == "pinned" {
		where = "pinned host memory"
	}
	name := "" // of no device where a record says none
	if len(r.Devices) > 0 {
		name = r.Devices[0].Name
	}
	if first.Text("direction") == Unpacked {
		return fmt.Sprintf("unpacking from %s on %s, times in us", where, name)
	}
	return fmt.Sprintf("packing into %s on %s, times in us", where, name)
}

// comparison is the groups of one direction.
type comparison struct {
	contenders []string
	groups     []Group
}

// write writes a table for each suite, a line a group, with an empty line after it,
// and then how it ended.
func (c comparison) write(w *strings.Builder) {
	for rest := c.groups; len(rest) > 0; {
		suite := rest[0].Rows[0].Text("suite")
		lines := [][]string{c.head()}
		for len(rest) > 0 && rest[0].Rows[0].Text("suite") == suite {
			lines = append(lines, c.line(rest[0]))
			rest = rest[1:]
		}
		align(w, lines)
		fmt.Fprintln(w)
	}
	for _, line := range c.outcome() {
		fmt.Fprintln(w, line)
	}
}

// overPaths reports whether paths contend; else engines do.
func (c comparison) overPaths() bool { return c.groups[0].Rows[0].Text("path") != "" }

func (c comparison) withAuto() bool {
	return !c.overPaths() && slices.Contains(c.contenders, autoEngine)
}

func (c comparison) busy() bool { return c.groups[0].Rows[0].Text("busy") != "" }

// head returns the names of the columns.
func (c comparison) head() []string {
	cells := slices.Concat([]string{"workload", "bytes", "contiguous"}, c.contenders, []string{"best", "of contiguous"})
	if c.withAuto() {
		cells = append(cells, "auto took", "auto/best")
	}
	if c.busy() {
		cells = append(cells, "busy lost")
	}
	return cells
}

// line returns their cells for a workload. What was not measured is a dash. What else
// ran lost its share to the best.
func (c comparison) line(g Group) []string {
	first := g.Rows[0]
	cells := []string{first.Workload(), first.Text("bytes"), wording.Micros(first.Median(CopyTime))}
	for _, name := range c.contenders {
		cell := "-"
		if row, ok := g.Of(name); ok {
			cell = wording.Micros(row.Median(Time))
		}
		cells = append(cells, cell)
	}
	best, ok := g.best()
	if ok {
		cells = append(cells, best.Contender(), wording.Percent(best.Median(Share)))
	} else {
		cells = append(cells, "-", "-")
	}
	if c.withAuto() {
		cells = append(cells, autoCells(g, best, ok)...)
	}
	if c.busy() {
		cells = append(cells, wording.Percent(best.Median(BusyLost)))
	}
	return cells
}

// autoCells say which engine auto took, and its time over that of the best.
func autoCells(g Group, best Row, isBest bool) []string {
	auto, ok := g.Of(autoEngine)
	if !ok {
		return []string{"-", "-"}
	}
	if !isBest {
		return []string{auto.Text("took"), "-"}
	}
	return []string{auto.Text("took"), fmt.Sprintf("%.2f", auto.Median(Time)/best.Median(Time))}
}

// outcome says how the contenders did: auto, where engines contend, or each path.
func (c comparison) outcome() (lines []string) {
	if !c.overPaths() {
		return autoSummary(c.groups)
	}
	for _, contender := range c.contenders {
		lines = append(lines, tally(contender, c.groups))
	}
	return lines
}
