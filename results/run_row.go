package results

import "github.com/halox/halox/results/internal/wording"

// RunRow returns the row of a record of a run: what was solved how, and how fast.
// The problem is described by the keys solver, grid.size and precision of the
// settings.
func (r *Record) RunRow() Row {
	problem, run := problemOf(r.Settings), r.Run
	row := NewRow().
		Label("solver", problem.Solver).Label("grid", wording.Times(problem.Grid.Size)).Label("precision", problem.Precision).
		Label("devices", len(r.Devices)).Label("scheme", run.Scheme).Label("order", run.Order).Label("path", run.Path).
		Label("iterations", run.Iterations)
	if run.StepsAnExchange > 1 {
		row = row.Label("steps_an_exchange", run.StepsAnExchange)
	}
	if run.UpdatesPerSecond != nil {
		row = row.Number(Updates, *run.UpdatesPerSecond)
	}
	if run.LoopSeconds != nil && run.Iterations > 0 {
		row = row.Number(Step, *run.LoopSeconds*1e6/float64(run.Iterations))
	}
	if run.LoopSeconds != nil {
		row = row.Number(Loop, *run.LoopSeconds)
	}
	if run.SetupSeconds != nil {
		row = row.Number(Setup, *run.SetupSeconds)
	}
	if run.Error != nil && run.Error.Max != nil {
		row = row.Number(MaxError, *run.Error.Max)
	}
	return row
}
