package results

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// align writes cells in columns: the first aligned left, all others right.
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
