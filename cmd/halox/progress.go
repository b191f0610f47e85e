package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/halox/halox/configs"
)

const (
	drawEvery = 100 * time.Millisecond // between two drawings of the bar
	drawLimit = time.Second            // for the last one, on a terminal that may have been stopped
)

// progress shows how far a run is, where somebody watches. What draws is a
// goroutine of its own: nothing that a terminal does holds up the run.
type progress struct {
	done  atomic.Int64  // steps
	stop  chan struct{} // closed when the run is over
	ended chan struct{} // closed when nothing draws any more
}

// newProgress draws a bar on w if that is a terminal, else nothing.
func newProgress(w io.Writer, c *configs.Run) *progress {
	if isTerminal(w) {
		return startProgress(newBar(w, c))
	}
	return startProgress(nil)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func newBar(w io.Writer, c *configs.Run) *progressbar.ProgressBar {
	return newBarOf(w, int64(c.Stop.Iterations), c.Solver, "steps")
}

// newBarOf returns a bar for so many steps, called by their unit.
func newBarOf(w io.Writer, steps int64, what, unit string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(steps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(unit),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)
}

// startProgress draws the bar until close; none where it is nil.
func startProgress(bar *progressbar.ProgressBar) *progress {
	p := &progress{stop: make(chan struct{}), ended: make(chan struct{})}
	if bar == nil {
		close(p.ended)
	} else {
		go p.draw(bar)
	}
	return p
}

// lineEvery is how often a line is printed where there is no bar.
const lineEvery = 10 * time.Second

// startLines prints a line from time to time, and one at the end, until close.
func startLines(w io.Writer, what string, all int64) *progress {
	p := &progress{stop: make(chan struct{}), ended: make(chan struct{})}
	go p.print(w, what, all)
	return p
}

// print says how far it is and, from the time that it took, how long the rest will take.
func (p *progress) print(w io.Writer, what string, all int64) {
	defer close(p.ended)
	start := time.Now()
	ticker := time.NewTicker(lineEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if done := p.done.Load(); done > 0 {
				took := time.Since(start)
				left := time.Duration(float64(took) / float64(done) * float64(all-done))
				fmt.Fprintf(w, "%s: %d of %d parts, about %v left\n", what, done, all, left.Round(time.Second))
			}
		case <-p.stop:
			fmt.Fprintf(w, "%s: %d of %d parts in %v\n", what, p.done.Load(), all, time.Since(start).Round(time.Second))
			return
		}
	}
}

// steps notes that n steps are done, and returns at once.
func (p *progress) steps(n int64) { p.done.Store(n) }

// draw draws the bar from time to time, and clears it at the end.
func (p *progress) draw(bar *progressbar.ProgressBar) {
	defer close(p.ended)
	bar.StartWithoutRender() // the speed counts from here
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			bar.Set64(p.done.Load())
		case <-p.stop:
			bar.Clear()
			return
		}
	}
}

// close clears the bar. It gives up on a terminal that takes nothing.
func (p *progress) close() {
	close(p.stop)
	select {
	case <-p.ended:
	case <-time.After(drawLimit):
	}
}
