package datatypes

import (
	"fmt"
	"strings"

	"github.com/halox/halox/results/plot"
)

// named returns the figure of that name.
func named[F interface{ head() *axes }](all []F, name string) (f F, err error) {
	var names []string
	for _, f := range all {
		if f.head().name == name {
			return f, nil
		}
		names = append(names, f.head().name)
	}
	return f, fmt.Errorf("--figure: there is no %q: take %s, or list", name, strings.Join(names, ", "))
}

// nothingShown is the error of a figure without curves.
type nothingShown struct{}

func (nothingShown) Error() string { return "nothing that it shows was measured" }

// Is reports that nothingShown is plot.ErrNothing.
func (nothingShown) Is(target error) bool { return target == plot.ErrNothing }

// chartOf is a chart of curves; without any it is an error, plot.ErrNothing.
func chartOf(c plot.Curves) (plot.Chart, error) {
	if len(c.Curves) == 0 {
		return nil, nothingShown{}
	}
	return c, nil
}
