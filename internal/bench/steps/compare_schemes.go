package steps

import (
	"math"

	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// compareSchemes adds to the rows how much faster they are than the baseline and than the
// best two-stream scheme of the same problem on as many devices, and than the best scheme
// of the same problem on one. Where these were not measured it adds nothing.
func compareSchemes(rows []results.Row) (compared []results.Row) {
	for _, row := range rows {
		problem := problemOf(row)
		devices := row.Text("devices")
		same := func(other results.Row, name scheme.Scheme) bool {
			return problemOf(other) == problem && other.Text("devices") == devices && other.Text("scheme") == string(name)
		}
		row = over(row, results.OverBaseline, best(rows, func(o results.Row) bool { return same(o, scheme.Baseline) }))
		row = over(row, results.OverTwoStream, best(rows, func(o results.Row) bool { return same(o, scheme.TwoStream) }))
		row = over(row, results.SpeedUp, best(rows, func(o results.Row) bool { return problemOf(o) == problem && o.Text("devices") == "1" }))
		compared = append(compared, row)
	}
	return compared
}

// problemOf names what is solved in a row.
func problemOf(row results.Row) [5]string {
	return [5]string{row.Text("stencil"), row.Text("points"), row.Text("precision"), row.Text("norms"), row.Text("sums")}
}

// best returns the shortest step of the rows that are meant, infinite where there is none.
func best(rows []results.Row, meant func(results.Row) bool) float64 {
	shortest := math.Inf(1)
	for _, row := range rows {
		if step, ok := row.Get(results.Step); ok && meant(row) {
			shortest = min(shortest, step.Median)
		}
	}
	return shortest
}

// over adds to a row how many times as fast it is as what takes so many microseconds.
func over(row results.Row, m results.Metric, us float64) results.Row {
	step, ok := row.Get(results.Step)
	if !ok || math.IsInf(us, 1) {
		return row
	}
	return row.Value(m, step.Under(us))
}
