package resultstest

import (
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
)

// LayoutRow begins the row of a layout of that name, with 1000 bytes.
func LayoutRow(name string) results.Row {
	parts := strings.Split(name, "/")
	row := results.LayoutRow(parts[0], parts[1], parts[2], 1000)
	row.Checked = true
	return row
}

// Transfer adds what 1000 bytes took, of which a copy in one piece takes 2 us.
func Transfer(row results.Row, us float64) results.Row {
	return row.Transfer(1000, measure.Exact(us), measure.Exact(2))
}

// PackRow is what an engine took for a layout.
func PackRow(name, direction, engine string, us float64) results.Row {
	row := LayoutRow(name).Label("direction", direction).Label("memory", "device").Label("pieces", 10).Label("engine", engine)
	return Transfer(row, us)
}

// Took makes the row one of auto.
func Took(row results.Row, engine string) results.Row {
	row = row.Label("engine", "auto").Label("took", engine)
	row.Note = engine + " 1 us"
	return row
}
