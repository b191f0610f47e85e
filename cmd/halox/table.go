package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table prints a title and rows of cells that tabs divide.
func table(out io.Writer, title string, header string, rows func(w io.Writer)) {
	fmt.Fprintf(out, "\n%s\n", title)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, header)
	rows(t)
	t.Flush()
}

// times writes sizes as 8 x 8 x 8.
func times(n []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(n), "[]"), " ", " x ")
}
