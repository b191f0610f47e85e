package main

import (
	"fmt"
	"io"
)

// printGroup says what several steps between two exchanges take.
func (w *setup) printGroup(out io.Writer) {
	steps := w.problem.Group
	if steps == 1 {
		return
	}
	width, extra := w.problem.Width(), w.problem.ExtraPoints(w.place)
	fmt.Fprintf(out, "%d steps between two exchanges: ghosts %v and %v wide, %d extra points swept in these steps, %.2g%% of all\n",
		steps, width.Minus[:w.config.Dims()], width.Plus[:w.config.Dims()], extra, 100*float64(extra)/float64(int64(steps)*w.problem.Grid.Points()))
}

// each is what the messages of one exchange are called: those of a step, or of several.
func (w *setup) each() string {
	if w.problem.Group > 1 {
		return fmt.Sprintf("%d steps", w.problem.Group)
	}
	return "one step"
}

// by says what an exchange is made for.
func (w *setup) by() string {
	if w.problem.Group > 1 {
		return "every " + w.each()
	}
	return "a step"
}
