package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/halox/halox/kernels"
)

// Intervals of the status line, shown during setup, and of progress bars or lines, shown during steps and measurements.
const (
	drawEvery = 100 * time.Millisecond // between two drawings
	lineEvery = 10 * time.Second       // between two lines without a terminal
	drawLimit = time.Second            // for the last drawing, on a terminal that may have been stopped
)

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// repeat calls draw every so often in its own goroutine, so that a terminal that blocks does not hold up the command,
// and once more, with last, when stop is called. stop waits for that, but not for a terminal that accepts nothing.
func repeat(every time.Duration, draw func(last bool)) (stop func()) {
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-time.After(every):
				draw(false)
			case <-ending:
				draw(true)
				return
			}
		}
	}()
	return func() {
		close(ending)
		select {
		case <-ended:
		case <-time.After(drawLimit):
		}
	}
}

// status shows what a command is making ready, in one line of a terminal that is overwritten. Notes for the user are
// written through it.
type status struct {
	close    func() // clears the line
	w        io.Writer
	doing    func() string
	compiler atomic.Pointer[kernels.Compiler] // the line counts the kernels that it compiles

	mu    sync.Mutex // of w and
	drawn string     // the line on the terminal
}

// newStatus draws on w what doing returns, if draws is set.
func newStatus(w io.Writer, doing func() string, draws bool) *status {
	s := &status{w: w, doing: doing, close: func() {}}
	if draws {
		s.close = repeat(drawEvery, func(last bool) {
			if last {
				s.line("")
			} else {
				s.line(s.text())
			}
		})
	}
	return s
}

// Write writes notes in place of the line, which is drawn again below them.
func (s *status) Write(notes []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.w.Write(notes)
}

func (s *status) text() string {
	text := s.doing()
	if c := s.compiler.Load(); c != nil {
		begun, done := c.Compiled()
		switch n := begun - done; {
		case n == 1:
			text += ", compiling a program"
		case n > 1:
			text += fmt.Sprintf(", compiling %d programs", n)
		}
	}
	return text
}

// line replaces the line on the terminal.
func (s *status) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != s.drawn {
		s.clear()
		fmt.Fprint(s.w, text)
		s.drawn = text
	}
}

func (s *status) clear() {
	if s.drawn != "" {
		fmt.Fprint(s.w, "\r", strings.Repeat(" ", len(s.drawn)), "\r")
	}
	s.drawn = ""
}

// progress shows how many of so many steps or parts are done.
type progress struct {
	close func() // ends it
	done  atomic.Int64
}

// newProgress draws a bar if w is a terminal. Elsewhere it writes a line from time to time if lines are wanted.
func newProgress(w io.Writer, what, unit string, all int64, lines bool) *progress {
	p := &progress{close: func() {}}
	switch {
	case isTerminal(w):
		return startBar(w, what, unit, all)
	case lines:
		start := time.Now()
		p.close = repeat(lineEvery, func(last bool) { p.print(w, what, unit, all, time.Since(start), last) })
	}
	return p
}

// startBar draws a bar from time to time, and clears it at the end.
func startBar(w io.Writer, what, unit string, all int64) *progress {
	bar := progressbar.NewOptions64(all,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(unit),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)
	bar.StartWithoutRender() // the speed counts from here
	p := &progress{}
	p.close = repeat(drawEvery, func(last bool) {
		if last {
			bar.Clear()
		} else {
			bar.Set64(p.done.Load())
		}
	})
	return p
}

// print writes how many steps or parts are done and, from the time they took, how long the rest will take.
func (p *progress) print(w io.Writer, what, unit string, all int64, took time.Duration, last bool) {
	done := p.done.Load()
	switch {
	case last:
		fmt.Fprintf(w, "%s: %d of %d %s in %v\n", what, done, all, unit, took.Round(time.Second))
	case done > 0:
		left := time.Duration(float64(took) / float64(done) * float64(all-done))
		fmt.Fprintf(w, "%s: %d of %d %s, about %v left\n", what, done, all, unit, left.Round(time.Second))
	}
}

// steps notes that n are done, and returns at once.
func (p *progress) steps(n int64) { p.done.Store(n) }
