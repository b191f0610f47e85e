package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table writes what was measured, a line a workload and a table for each direction
// and suite, and after those of a direction how auto did.
func (p *Packs) Table(w io.Writer) error {
	var text strings.Builder
	for _, direction := range []string{Packed, Unpacked} {
		groups := slices.DeleteFunc(p.Groups(), func(g PackGroup) bool { return g.Rows[0].Direction != direction })
		if len(groups) == 0 {
			continue
		}
		if text.Len() > 0 {
			fmt.Fprintln(&text)
		}
		fmt.Fprintf(&text, "%s\n\n", p.caption(direction))
		tables(&text, p.head(), groups, p.line)
		for _, line := range verdict(groups) {
			fmt.Fprintln(&text, line)
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("results: write table: %w", err)
	}
	return nil
}

// caption says what a table holds.
func (p *Packs) caption(direction string) string {
	where := "device memory"
	if p.To == "pinned" {
		where = "pinned host memory"
	}
	if direction == Unpacked {
		return fmt.Sprintf("unpacking from %s on %s, times in us", where, p.Device.Name)
	}
	return fmt.Sprintf("packing into %s on %s, times in us", where, p.Device.Name)
}

// head returns the names of the columns.
func (p *Packs) head() []string {
	cells := head(p.Contenders)
	if slices.Contains(p.Contenders, AutoEngine) {
		cells = append(cells, "auto took", "auto/best")
	}
	return cells
}

// line returns the cells of a workload. What was not measured is a dash.
func (p *Packs) line(g PackGroup) []string {
	cells := line(p.Contenders, g)
	if !slices.Contains(p.Contenders, AutoEngine) {
		return cells
	}
	took, times := "-", "-"
	if auto, ok := g.Of(AutoEngine); ok {
		took = auto.Took
		if best, ok := g.Best(); ok {
			times = fmt.Sprintf("%.2f", auto.US/best.US)
		}
	}
	return append(cells, took, times)
}

// tolerance is by how much two times may differ and count as one.
const tolerance = 1.05

// mostNamed is how many workloads a verdict names.
const mostNamed = 5

// verdict says how auto did: against the best engine, and against the driver's
// own copies.
func verdict(groups []PackGroup) []string {
	var best, copies comparison
	for _, g := range groups {
		auto, ok := g.Of(AutoEngine)
		if !ok {
			continue
		}
		if row, ok := g.Best(); ok {
			best.add(auto, row)
		}
		if row, ok := g.Of(CopiesEngine); ok {
			copies.add(auto, row)
		}
	}
	if best.all == 0 {
		return nil
	}
	lines := append([]string{fmt.Sprintf("auto took the best engine, or one within 5%% of it, for %d of %d workloads", best.all-len(best.lost), best.all)}, best.worst()...)
	if copies.all == 0 {
		return append(lines, "the driver's own copies suit none of them")
	}
	lines = append(lines, fmt.Sprintf("auto lost to the driver's own copies, by more than 5%%, for %d of the %d workloads that they suit", len(copies.lost), copies.all))
	return append(lines, copies.worst()...)
}

// comparison is of auto with another over some workloads.
type comparison struct {
	all  int
	lost []loss
}

// loss is a workload for which auto took so many times as long.
type loss struct {
	auto, other Pack
	times       float64
}

// add compares two rows of a workload. Where auto took the other engine, the two
// times are of the same work.
func (c *comparison) add(auto, other Pack) {
	c.all++
	if times := auto.US / other.US; times > tolerance && auto.Took != other.Engine {
		c.lost = append(c.lost, loss{auto, other, times})
	}
}

// worst names the greatest losses.
func (c *comparison) worst() (lines []string) {
	slices.SortStableFunc(c.lost, func(a, b loss) int { return cmp.Compare(b.times, a.times) })
	for i, l := range c.lost {
		if i == mostNamed {
			return append(lines, fmt.Sprintf("  and %d more", len(c.lost)-i))
		}
		lines = append(lines, fmt.Sprintf("  %s: %s took %.2f times as long as %s", l.auto.Workload(), l.auto.Took, l.times, l.other.Contender()))
	}
	return lines
}
