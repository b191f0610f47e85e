package results

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The directions of a row of packing.
const (
	Packed   = "pack"
	Unpacked = "unpack"
)

// AutoEngine is the engine that takes the one it found the fastest, and
// CopiesEngine that of the driver's own copies.
const (
	AutoEngine   = "auto"
	CopiesEngine = "copies"
)

// LayoutRow begins a row of a bench of datatypes: which layout of which suite, with
// which parameters, as name=value,..., and its packed bytes.
func LayoutRow(suite, layout, params string, bytes int64) Row {
	return NewRow().Label("suite", suite).Label("layout", layout).Label(paramsLabel, params).Label("bytes", bytes)
}

// Workload returns suite/layout/params.
func (r Row) Workload() string {
	return r.Text("suite") + "/" + r.Text("layout") + "/" + r.Text(paramsLabel)
}

// Contender names what took part in a bench of datatypes: an engine, with its
// variant where it has one, or a path, with the engine where that is not auto.
func (r Row) Contender() string {
	engine, path, remote := r.Text("engine"), r.Text("path"), ""
	if r.Text("remote") != "" {
		remote = "remote"
	}
	if path != "" && engine == AutoEngine {
		engine = ""
	}
	return join(", ", path, remote, engine, r.Text("variant"))
}

// rival reports whether it is none of the other contenders by another name: auto,
// among engines, is one of them.
func (r Row) rival() bool { return r.Text("path") != "" || r.Text("engine") != AutoEngine }

// A Group is the rows of one workload, in one direction where there are two.
type Group struct{ Rows []Row }

// Of returns the row of a contender.
func (g Group) Of(contender string) (row Row, ok bool) {
	for _, row := range g.Rows {
		if row.Contender() == contender {
			return row, true
		}
	}
	return row, false
}

// Best returns the row of the fastest contender, without engine auto; it is false
// where there is none.
func (g Group) Best() (best Row, ok bool) {
	for _, row := range g.Rows {
		if row.rival() && (!ok || row.Median(Time) < best.Median(Time)) {
			best, ok = row, true
		}
	}
	return best, ok
}

// Groups returns the rows of a bench of datatypes by workload and direction, in their
// order. The rows of a group follow each other.
func (r *Record) Groups() []Group {
	var all []Group
	together := func(a, b Row) bool {
		return a.Workload() == b.Workload() && a.Text("direction") == b.Text("direction")
	}
	for i, row := range r.Rows {
		if i == 0 || !together(r.Rows[i-1], row) {
			all = append(all, Group{})
		}
		last := &all[len(all)-1]
		last.Rows = append(last.Rows, row)
	}
	return all
}

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
		return what + join(", ", r.Between(), first.Limits(), "times of one way in us")
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

// Between names the devices that the rows of a record go from and to, and their link
// where it is known. Without rows it is "".
func (r *Record) Between() string {
	if len(r.Rows) == 0 {
		return ""
	}
	row := r.Rows[0]
	from, to := r.deviceName(row, "from"), r.deviceName(row, "to")
	if from == to {
		return from + " alone"
	}
	return join(" over ", from+" and "+to, row.Text("link"))
}

// deviceName names the device whose id a label has.
func (r *Record) deviceName(row Row, label string) string {
	id := row.Text(label)
	for _, d := range r.Devices {
		if strconv.Itoa(d.ID) == id {
			return d.Name + " " + id
		}
	}
	return "device " + id
}

// Limits says how messages were held back, "" where they were not.
func (r Row) Limits() string {
	var all []string
	for _, limit := range []struct{ label, format string }{
		{"fragment", "fragments of %s B"}, {"ring", "a ring of %s"}, {"thread_blocks", "%s thread blocks at most"},
	} {
		if text := r.Text(limit.label); text != "" {
			all = append(all, fmt.Sprintf(limit.format, text))
		}
	}
	if busy, ok := r.Float("busy"); ok {
		all = append(all, "devices "+percent(busy)+" busy")
	}
	return strings.Join(all, ", ")
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
	return !c.overPaths() && slices.Contains(c.contenders, AutoEngine)
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
	cells := []string{first.Workload(), first.Text("bytes"), micros(first.Median(CopyTime))}
	for _, name := range c.contenders {
		cell := "-"
		if row, ok := g.Of(name); ok {
			cell = micros(row.Median(Time))
		}
		cells = append(cells, cell)
	}
	best, ok := g.Best()
	if ok {
		cells = append(cells, best.Contender(), percent(best.Median(Share)))
	} else {
		cells = append(cells, "-", "-")
	}
	if c.withAuto() {
		cells = append(cells, autoCells(g, best, ok)...)
	}
	if c.busy() {
		cells = append(cells, percent(best.Median(BusyLost)))
	}
	return cells
}

// autoCells say which engine auto took, and its time over that of the best.
func autoCells(g Group, best Row, isBest bool) []string {
	auto, ok := g.Of(AutoEngine)
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
