package results

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/halox/halox/results/internal/wording"
)

// tally says how often a contender was the fastest, and its share of what a
// contiguous message has.
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
		return contender + " suits none of them"
	}
	slices.Sort(shares)
	return fmt.Sprintf("%s: the fastest for %d of %d workloads; the median is %s of a contiguous message's bandwidth",
		contender, first, len(shares), wording.Percent(shares[len(shares)/2]))
}

// tolerance is by how much two times may differ and count as one.
const tolerance = 1.05

// maxNamed is how many workloads a summary names.
const maxNamed = 5

// autoSummary says how auto did: against the best engine, and against the driver's
// own copies.
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
	lines := append([]string{fmt.Sprintf("auto took the best engine, or one within 5%% of it, for %d of %d workloads", best.all-len(best.lost), best.all)}, best.worst()...)
	if copies.all == 0 {
		return append(lines, "the driver's own copies suit none of them")
	}
	lines = append(lines, fmt.Sprintf("auto lost to the driver's own copies, by more than 5%%, for %d of the %d workloads that they suit", len(copies.lost), copies.all))
	return append(lines, copies.worst()...)
}

// autoComparison is of auto with another over some workloads.
type autoComparison struct {
	all  int
	lost []loss
}

// loss is a workload for which auto took so many times as long.
type loss struct {
	auto, other Row
	times       float64
}

// add compares two rows of a workload. Where auto took the other engine, the two
// times are of the same work.
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
		lines = append(lines, fmt.Sprintf("  %s: %s took %.2f times as long as %s", l.auto.Workload(), l.auto.Text("took"), l.times, l.other.Contender()))
	}
	return lines
}
