package main

import (
	"fmt"
	"io"

	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/streams"
)

// tracing is the trace of a run under way; nil where none is wanted.
type tracing struct {
	file   string
	window streams.Window
	tracer *streams.Tracer
	found  *trace.Trace // once the run is over
}

// report says how much of the communication was hidden, and where it can be seen.
func (t *tracing) report(out io.Writer) {
	if t == nil {
		return
	}
	text := t.found.HiddenText()
	switch {
	case !t.found.Traced():
		text = fmt.Sprintf("nothing was traced: the run ended before step %d", t.window.First)
	case text == "":
		text = "no communication was traced"
	}
	fmt.Fprintf(out, "%-10s %s\n", "hidden", text)
	if n := t.found.About.Lost; n > 0 {
		fmt.Fprintf(out, "%-10s the trace lacks %d operations\n", "", n)
	}
	fmt.Fprintln(out, "wrote", t.file)
}
