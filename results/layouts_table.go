package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// head returns the names of the columns that every bench of datatypes has.
func head(contenders []string) []string {
	return slices.Concat([]string{"workload", "bytes", "contiguous"}, contenders, []string{"best", "of contiguous"})
}

// line returns their cells for a workload. What was not measured is a dash.
func line[R Row](contenders []string, g Group[R]) []string {
	layout, cost := g.Rows[0].layout(), g.Rows[0].cost()
	cells := []string{layout.Workload(), fmt.Sprint(layout.Bytes), micros(cost.ContiguousUS)}
	for _, name := range contenders {
		if row, ok := g.Of(name); ok {
			cells = append(cells, micros(row.cost().US))
		} else {
			cells = append(cells, "-")
		}
	}
	best, ok := g.Best()
	if !ok {
		return append(cells, "-", "-")
	}
	return append(cells, best.Contender(), percent(best.cost().ShareOfContiguous))
}

// tables writes a table for each suite, a line a group, with an empty line after it.
func tables[R Row](w *strings.Builder, head []string, groups []Group[R], line func(Group[R]) []string) {
	for len(groups) > 0 {
		suite := groups[0].Rows[0].layout().Suite
		lines := [][]string{head}
		for len(groups) > 0 && groups[0].Rows[0].layout().Suite == suite {
			lines = append(lines, line(groups[0]))
			groups = groups[1:]
		}
		align(w, lines)
		fmt.Fprintln(w)
	}
}

// micros shows a time in microseconds to three digits, or all before the point.
func micros(us float64) string {
	return strconv.FormatFloat(us, 'f', decimals(us), 64)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// align writes cells in columns, the first to the left, all others to the right.
func align(w *strings.Builder, lines [][]string) {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		for i, cell := range line {
			if i == 0 {
				fmt.Fprintf(w, "%-*s", widths[i], cell)
			} else {
				fmt.Fprintf(w, "  %*s", widths[i], cell)
			}
		}
		fmt.Fprintln(w)
	}
}
