package plot

import "github.com/halox/halox/results"

// A sourceRow is a row and the record that it comes from, by its place among all.
type sourceRow struct {
	results.Row
	source int
}
