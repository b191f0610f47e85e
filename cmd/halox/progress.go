package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/halox/halox/configs"
)

// progress shows how far a run is, where somebody watches.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress returns a bar on w if that is a terminal, else one that shows
// nothing.
func newProgress(w io.Writer, c *configs.Run) progress {
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return progress{}
	}
	return progress{progressbar.NewOptions64(int64(c.Stop.Iterations),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(c.Solver),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("steps"),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100e6),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)}
}

// steps shows that n steps are done.
func (p progress) steps(n int64) {
	if p.bar != nil {
		p.bar.Set64(n)
	}
}

// close clears the bar.
func (p progress) close() {
	if p.bar != nil {
		p.bar.Clear()
	}
}
