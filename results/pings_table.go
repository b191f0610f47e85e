package results

import (
	"fmt"
	"io"
	"strings"
)

// Table writes what was measured, a line a workload and a table for each suite, and
// then how each contender did.
func (p *Pings) Table(w io.Writer) error {
	var text strings.Builder
	if groups := p.Groups(); len(groups) > 0 {
		fmt.Fprintf(&text, "%s\n\n", p.caption())
		tables(&text, p.head(), groups, p.line)
		for _, contender := range p.Contenders {
			fmt.Fprintln(&text, tally(contender, groups))
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("results: write table: %w", err)
	}
	return nil
}

// Between names the two devices, and their link where it is known.
func (p *Pings) Between() string {
	if p.From.ID == p.To.ID {
		return fmt.Sprintf("%s %d alone", p.From.Name, p.From.ID)
	}
	names := fmt.Sprintf("%s %d and %s %d", p.From.Name, p.From.ID, p.To.Name, p.To.ID)
	if p.Link != "" {
		names += " over " + p.Link
	}
	return names
}

// Limits says how the messages were held back, "" where they were not.
func (p *Pings) Limits() string {
	var all []string
	if p.FragmentBytes > 0 {
		all = append(all, fmt.Sprintf("fragments of %d B", p.FragmentBytes))
	}
	if p.Ring > 0 {
		all = append(all, fmt.Sprintf("a ring of %d", p.Ring))
	}
	if p.Blocks > 0 {
		all = append(all, fmt.Sprintf("%d thread blocks at most", p.Blocks))
	}
	if p.Busy != nil {
		all = append(all, fmt.Sprintf("devices %s busy", percent(p.Busy.Fraction)))
	}
	return strings.Join(all, ", ")
}

// caption says what the table holds.
func (p *Pings) caption() string {
	caption := "ping-pong between " + p.Between()
	if p.From.ID == p.To.ID {
		caption = "ping-pong on " + p.Between()
	}
	if limits := p.Limits(); limits != "" {
		caption += ", " + limits
	}
	return caption + ", times of one way in us"
}

// head returns the names of the columns.
func (p *Pings) head() []string {
	cells := head(p.Contenders)
	if p.Busy != nil {
		cells = append(cells, "busy lost")
	}
	return cells
}

// line returns the cells of a workload. What else ran lost its share to the best.
func (p *Pings) line(g PingGroup) []string {
	cells := line(p.Contenders, g)
	if p.Busy != nil {
		best, _ := g.Best()
		cells = append(cells, percent(best.BusyLost))
	}
	return cells
}

// tally says how often a contender was the fastest, and its share of what a
// contiguous message has.
func tally(contender string, groups []PingGroup) string {
	var shares []float64
	first := 0
	for _, g := range groups {
		row, ok := g.Of(contender)
		if !ok {
			continue
		}
		shares = append(shares, row.ShareOfContiguous)
		if best, _ := g.Best(); best.US == row.US {
			first++
		}
	}
	if len(shares) == 0 {
		return contender + " suits none of them"
	}
	return fmt.Sprintf("%s: the fastest for %d of %d workloads; the median is %s of a contiguous message's bandwidth", contender, first, len(shares), percent(median(shares)))
}
