package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/halox/halox/kernels"
)

// status shows what a command makes ready, in one line that is written over, where somebody
// watches. What draws is a goroutine of its own, as of progress. Notes are written through it.
type status struct {
	w        io.Writer
	doing    func() string
	compiler atomic.Pointer[kernels.Compiler]
	stop     chan struct{} // closed when all is ready
	ended    chan struct{} // closed when nothing draws any more

	mu    sync.Mutex // of w and
	drawn string     // the line that is there
}

// newStatus draws on w what doing returns, if that is a terminal, else nothing.
func newStatus(w io.Writer, doing func() string) *status {
	s := &status{w: w, doing: doing, stop: make(chan struct{}), ended: make(chan struct{})}
	if isTerminal(w) {
		go s.draw()
	} else {
		close(s.ended)
	}
	return s
}

// compiles has the line say how many kernels are being compiled.
func (s *status) compiles(c *kernels.Compiler) { s.compiler.Store(c) }

// Write writes notes in place of the line, which comes again behind them.
func (s *status) Write(notes []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.w.Write(notes)
}

// draw draws the line from time to time, and clears it at the end.
func (s *status) draw() {
	defer close(s.ended)
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.line(s.text())
		case <-s.stop:
			s.line("")
			return
		}
	}
}

// text is the line.
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

// line puts a text in place of the one that is there.
func (s *status) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == s.drawn {
		return
	}
	s.clear()
	fmt.Fprint(s.w, text)
	s.drawn = text
}

func (s *status) clear() {
	if s.drawn != "" {
		fmt.Fprint(s.w, "\r", strings.Repeat(" ", len(s.drawn)), "\r")
	}
	s.drawn = ""
}

// close clears the line. It gives up on a terminal that takes nothing.
func (s *status) close() {
	close(s.stop)
	select {
	case <-s.ended:
	case <-time.After(drawLimit):
	}
}
