package datatypes

import (
	"fmt"
	"slices"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/results"
)

// AllEngines names all engines among the values of an option.
const AllEngines = "all"

// Engines returns what an option that names engines may hold: all, auto and the names of engines.
func Engines() []string {
	names := []string{AllEngines, string(packing.Auto)}
	for _, e := range packing.Engines() {
		names = append(names, string(e))
	}
	return names
}

// chosenEngines returns those that names of Engines choose, auto last.
func chosenEngines(names []string) (all []packing.Engine) {
	for _, e := range append(packing.Engines(), packing.Auto) {
		if slices.Contains(names, string(e)) || e != packing.Auto && slices.Contains(names, AllEngines) {
			all = append(all, e)
		}
	}
	return all
}

// contender is an engine, told how to work.
type contender struct {
	engine  packing.Engine
	variant string // the name of the options, if they are not the engine's own
	options packing.Options
}

// String names it as results do.
func (c contender) String() string { return c.row().Contender() }

// row begins the row of a contender.
func (c contender) row() results.Row {
	return results.NewRow().Label("engine", c.engine).Label("variant", c.variant)
}

// namesOf returns what contends as results name it.
func namesOf[C fmt.Stringer](all []C) (names []string) {
	for _, c := range all {
		names = append(names, c.String())
	}
	return names
}
