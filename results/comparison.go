package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// The directions of a row of packing.
const (
	Packed   = "pack"
	Unpacked = "unpack"
)

// autoEngine is the engine that uses the fastest one by measurement, and copiesEngine that of the driver's
// copies.
const (
	autoEngine   = "auto"
	copiesEngine = "copies"
)

// LayoutRow begins a row of a benchmark of datatypes: the layout, its suite, its parameters as
// name=value,..., and its packed bytes.
func LayoutRow(suite, layout, params string, bytes int64) Row {
	return NewRow().Label("suite", suite).Label("layout", layout).Label(paramsLabel, params).Label("bytes", bytes)
}

// Workload returns suite/layout/params.
func (r Row) Workload() string {
	return r.Text("suite") + "/" + r.Text("layout") + "/" + r.Text(paramsLabel)
}

// Contender names a contender in a benchmark of datatypes: an engine with its variant, if any, or a path with
// the engine unless that is auto.
func (r Row) Contender() string {
	engine, path, remote := r.Text("engine"), r.Text("path"), ""
	if r.Text("remote") != "" {
		remote = "remote"
	}
	if path != "" && engine == autoEngine {
		engine = ""
	}
	return wording.Join(", ", path, remote, engine, r.Text("variant"))
}

// rival reports whether the row is a separate contender. Engine auto is not: it is one of the other engines.
func (r Row) rival() bool { return r.Text("path") != "" || r.Text("engine") != autoEngine }

// A Group is the rows of one workload, in one direction if there are two.
type Group struct {
	Rows []Row // rows in their order
}

// Of returns the row of a contender.
func (g Group) Of(contender string) (row Row, ok bool) {
	for _, row := range g.Rows {
		if row.Contender() == contender {
			return row, true
		}
	}
	return row, false
}

// best returns the row of the fastest contender except engine auto; false if there is none.
func (g Group) best() (best Row, ok bool) {
	for _, row := range g.Rows {
		if row.rival() && (!ok || row.Median(Time) < best.Median(Time)) {
			best, ok = row, true
		}
	}
	return best, ok
}

// Groups returns the rows of a benchmark of datatypes by workload, direction and settings, in their order. The rows of
// a group must be consecutive.
func (r *Record) Groups() []Group {
	var all []Group
	together := func(a, b Row) bool {
		return a.Workload() == b.Workload() && !slices.ContainsFunc([]string{"direction", "memory", "thread_blocks", "busy"},
			func(label string) bool { return a.Text(label) != b.Text(label) })
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

// Between names the source and target devices of the rows of a record, and their link if known; "" without
// rows.
func (r *Record) Between() string {
	if len(r.Rows) == 0 {
		return ""
	}
	row := r.Rows[0]
	from, to := r.deviceName(row, "from"), r.deviceName(row, "to")
	if from == to {
		return from + " alone"
	}
	return wording.Join(" over ", from+" and "+to, row.Text("link"))
}

// deviceName names the device whose id is the value of a label.
func (r *Record) deviceName(row Row, label string) string {
	id := row.Text(label)
	for _, d := range r.Devices {
		if strconv.Itoa(d.ID) == id {
			return d.Name + " " + id
		}
	}
	return "device " + id
}

// Limits describes the limits on messages, "" if there were none.
func (r Row) Limits() string {
	var all []string
	for _, limit := range []struct{ label, format string }{
		{"fragment", "fragments of %s B"}, {"ring", "a ring of %s"}, {"thread_blocks", "at most %s thread blocks"},
	} {
		if text := r.Text(limit.label); text != "" {
			all = append(all, fmt.Sprintf(limit.format, text))
		}
	}
	if busy, ok := r.Float("busy"); ok {
		all = append(all, "devices "+wording.Percent(busy)+" busy")
	}
	return strings.Join(all, ", ")
}

// tally describes how often a contender was the fastest, and its share of the bandwidth of a contiguous
// message.
func tally(contender string, groups []Group) string {
	var shares []float64
	first := 0
	for _, g := range groups {
		row, ok := g.Of(contender)
		if !ok {
			continue
		}
		shares = append(shares, row.Median(Share))
		if best, _ := g.best(); best.Median(Time) == row.Median(Time) {
			first++
		}
	}
	if len(shares) == 0 {
		return contender + " supports none of them"
	}
	slices.Sort(shares)
	return fmt.Sprintf("%s: the fastest for %d of %d workloads; the median is %s of a contiguous message's bandwidth",
		contender, first, len(shares), wording.Percent(shares[len(shares)/2]))
}

// tolerance is the ratio up to which two times count as equal.
const tolerance = 1.05

// maxNamed is the number of workloads that a summary names.
const maxNamed = 5

// autoSummary compares auto with the best engine, and with the driver's copies.
func autoSummary(groups []Group) []string {
	var best, copies autoComparison
	for _, g := range groups {
		auto, ok := g.Of(autoEngine)
		if !ok {
			continue
		}
		if row, ok := g.best(); ok {
			best.add(auto, row)
		}
		if row, ok := g.Of(copiesEngine); ok {
			copies.add(auto, row)
		}
	}
	if best.all == 0 {
		return nil
	}
	lines := append([]string{fmt.Sprintf("auto took the best engine, or one within 5%% of it, for %d of %d workloads",
		best.all-len(best.lost), best.all)}, best.worst()...)
	if copies.all == 0 {
		return append(lines, "the driver's copies support none of them")
	}
	return append(append(lines, fmt.Sprintf(
		"auto was slower than the driver's copies, by more than 5%%, for %d of the %d workloads that they support",
		len(copies.lost), copies.all)), copies.worst()...)
}

// autoComparison compares auto with another contender over some workloads.
type autoComparison struct {
	all  int
	lost []loss
}

// loss is a workload with the time of auto relative to the other contender.
type loss struct {
	auto, other Row
	times       float64
}

// add compares two rows of a workload. If auto used the other engine, the two times are of the same work.
func (c *autoComparison) add(auto, other Row) {
	c.all++
	if times := auto.Median(Time) / other.Median(Time); times > tolerance && auto.Text("took") != other.Text("engine") {
		c.lost = append(c.lost, loss{auto, other, times})
	}
}

// worst names the greatest losses.
func (c *autoComparison) worst() (lines []string) {
	slices.SortStableFunc(c.lost, func(a, b loss) int { return cmp.Compare(b.times, a.times) })
	for i, l := range c.lost {
		if i == maxNamed {
			return append(lines, fmt.Sprintf("  and %d more", len(c.lost)-i))
		}
		lines = append(lines, fmt.Sprintf("  %s: %s took %.2f times as long as %s",
			l.auto.Workload(), l.auto.Text("took"), l.times, l.other.Contender()))
	}
	return lines
}

// WriteComparison writes the results of a benchmark of datatypes as a comparison: one line per workload, one
// column per contender in the given order, one table per direction and suite, and after those of a direction
// a summary of the contenders. Without rows it writes nothing.
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

// comparisonCaption describes the tables whose first row this is.
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
	name := "" // empty if the record names no device
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

// write writes a table for each suite, one line per group, followed by an empty line and the summary.
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

// overPaths reports whether the contenders are paths; otherwise they are engines.
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

// line returns the cells for a workload, with a dash if not measured. Concurrent work lost its share to the
// best.
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
	share := "-"
	if ok {
		share = wording.Percent(best.Median(Share))
	}
	cells = append(cells, wording.OrDash(best.Contender()), share)
	if c.withAuto() {
		auto, isAuto := g.Of(autoEngine)
		times := "-"
		if isAuto && ok {
			times = fmt.Sprintf("%.2f", auto.Median(Time)/best.Median(Time))
		}
		cells = append(cells, wording.OrDash(auto.Text("took")), times)
	}
	if c.busy() {
		cells = append(cells, wording.Percent(best.Median(BusyLost)))
	}
	return cells
}

// outcome summarizes the contenders: auto, if engines contend, or each path.
func (c comparison) outcome() (lines []string) {
	if !c.overPaths() {
		return autoSummary(c.groups)
	}
	for _, contender := range c.contenders {
		lines = append(lines, tally(contender, c.groups))
	}
	return lines
}
