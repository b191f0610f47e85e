package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/halox/halox/results"
)

// measured reports whether a row has numbers. One without has a note that says why.
func measured(row results.Row) bool { return len(row.Values) > 0 }

// Measured returns the record without the rows that have no numbers.
func Measured(r *results.Record) *results.Record {
	part := *r
	part.Rows = slices.DeleteFunc(slices.Clone(r.Rows), func(row results.Row) bool { return !measured(row) })
	return &part
}

// NameOf names a row by its labels.
func NameOf(row results.Row) string {
	var parts []string
	for _, l := range row.Labels {
		parts = append(parts, l.Name+" "+row.Text(l.Name))
	}
	return strings.Join(parts, ", ")
}

// noteLeftOut says what was not measured, and why.
func noteLeftOut(r *results.Record, notes io.Writer) {
	for _, row := range r.Rows {
		if !measured(row) {
			fmt.Fprintf(notes, "not measured: %s: %s\n", NameOf(row), row.Note)
		}
	}
}

// checkLeftOut is the error of a record in which a link lies, or in which every row was left out.
func checkLeftOut(r *results.Record) error {
	lies := func(row results.Row) bool { return !measured(row) && strings.Contains(row.Note, " lies: ") }
	if slices.ContainsFunc(r.Rows, lies) {
		return errors.New("a link does not carry what is sent over it")
	}
	if r.Interrupted || r.Failure != "" || len(r.Rows) == 0 || slices.ContainsFunc(r.Rows, measured) {
		return nil
	}
	return fmt.Errorf("nothing could be measured: all was left out, such as %s: %s", NameOf(r.Rows[0]), r.Rows[0].Note)
}
