package results

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// micros shows a time in microseconds to three digits, or all before the point.
func micros(us float64) string {
	return strconv.FormatFloat(us, 'f', decimals(us), 64)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// words writes a name with spaces.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

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
