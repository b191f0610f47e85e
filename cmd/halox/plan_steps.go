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
	dims := w.config.Dims()
	ghosts := fmt.Sprintf("%v wide", width.Minus[:dims])
	if width.Minus != width.Plus {
		ghosts = fmt.Sprintf("%v wide at low sides and %v at high ones", width.Minus[:dims], width.Plus[:dims])
	}
	fmt.Fprintf(out, "%d steps between two exchanges: ghosts %s, %d ghosts swept beside %d points in these steps\n", steps, ghosts, extra, int64(steps)*w.problem.Grid.Points())
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
