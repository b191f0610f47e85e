package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/halox/halox/kernels"
)

// errInterrupted is the outcome of a command that was told to stop.
var errInterrupted = errors.New("interrupted")

// How long a command goes on after a signal to stop: less than 2 s together.
const (
	stopTime = time.Second            // to stop by itself
	keepTime = 700 * time.Millisecond // to write what there is, for a command that did not stop
	// togetherTime is stopTime for one of several processes: mpirun of Open MPI 4 kills them a second after its signal.
	togetherTime = 600 * time.Millisecond
)

// interrupts ends a command at a signal to stop.
type interrupts struct {
	ctx     context.Context // of the command
	cancel  context.CancelFunc
	signals chan os.Signal
	notes   io.Writer

	mu      sync.Mutex    // of what follows
	stops   bool          // the command looks at its context
	doing   string        // "stepping"
	keep    func() string // writes what the command has, and says what was kept
	several bool          // the command is one of several processes
	waits   bool          // it only waits for another process, see waitingForAnother
}

// interruptsKey is the key of the interrupts in a command's context.
type interruptsKey struct{}

// catchInterrupts listens to the signals to stop from now on, except those that this process was started to ignore, as
// nohup does.
func catchInterrupts(parent context.Context, notes io.Writer) *interrupts {
	i := &interrupts{signals: make(chan os.Signal, 2), notes: notes}
	ctx, cancel := context.WithCancel(parent)
	i.ctx, i.cancel = context.WithValue(ctx, interruptsKey{}, i), cancel
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(i.signals, s)
		}
	}
	return i
}

// run runs a command with a context that ends at the first signal. A command that is still running some time later, or
// at the next signal, is abandoned after what it had is kept: the caller ends the process then. A third signal has its
// default effect.
func (i *interrupts) run(command func(ctx context.Context) error) error {
	defer i.cancel()
	defer signal.Stop(i.signals)
	done := make(chan error, 1)
	go func() { done <- command(i.ctx) }()
	var s os.Signal
	select {
	case err := <-done:
		return interruption(i.ctx, err)
	case s = <-i.signals:
	}
	i.cancel()
	told := time.Now()
stopping:
	for left := i.patience(); left > 0; left = i.patience() - time.Since(told) {
		select {
		case err := <-done:
			return interruption(i.ctx, err)
		case <-i.signals:
			break stopping
		case <-time.After(left):
		}
	}
	signal.Stop(i.signals)
	i.force(s)
	return errInterrupted
}

// patience returns how long after a signal the command may take to stop by itself: 0 if it does not look at its
// context.
func (i *interrupts) patience() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.stops:
		return 0
	case i.waits:
		return waitLimit
	case i.several:
		return togetherTime
	default:
		return stopTime
	}
}

// force keeps what the command has and says what it was doing, if keepTime is enough.
func (i *interrupts) force(s os.Signal) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.mu.Lock() // never unlocked: the command goes no further
		doing, kept := "", ""
		if i.doing != "" {
			doing = " while " + i.doing
		}
		if i.keep != nil {
			kept = i.keep()
		}
		fmt.Fprintf(i.notes, "%v: ended by force%s%s\n", s, doing, kept)
	}()
	select {
	case <-ended:
	case <-time.After(keepTime):
	}
}

// during says what a command does from now on, for a command that looks at its context. If it is ended by force then,
// keep writes what there is and says so, in words such as "; r.json has the rows until then"; nil: there is nothing.
// keep is called by another goroutine.
func during(ctx context.Context, doing string, keep func() string) {
	change(ctx, func(i *interrupts) { i.stops, i.doing, i.keep = true, doing, keep })
}

// oneOfSeveral says that a command runs as one of several processes, which their launcher ends too.
func oneOfSeveral(ctx context.Context) { change(ctx, func(i *interrupts) { i.several = true }) }

// waitingForAnother says that from now on a command only answers another process. That process has its own limits, and
// a launcher may end it when this one leaves early.
func waitingForAnother(ctx context.Context) { change(ctx, func(i *interrupts) { i.waits = true }) }

// doing returns what during said last that a command does, "" at first.
func doing(ctx context.Context) (what string) {
	change(ctx, func(i *interrupts) { what = i.doing })
	return what
}

// change calls do with the interrupts of a command's context, if it has any.
func change(ctx context.Context, do func(i *interrupts)) {
	if i, ok := ctx.Value(interruptsKey{}).(*interrupts); ok {
		i.mu.Lock()
		defer i.mu.Unlock()
		do(i)
	}
}

// interruption is errInterrupted for the error of a context that has ended.
func interruption(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errInterrupted
	}
	return err
}

// Shows of what a command does: a line while it makes ready, a bar or lines while it steps or measures.
const (
	drawEvery = 100 * time.Millisecond // between two drawings
	lineEvery = 10 * time.Second       // between two lines where there is no terminal
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

// newStatus draws what doing returns on w if that is a terminal; elsewhere nothing.
func newStatus(w io.Writer, doing func() string) *status { return startStatus(w, doing, isTerminal(w)) }

func startStatus(w io.Writer, doing func() string, draws bool) *status {
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
		p.close = repeat(lineEvery, func(last bool) { p.print(w, what, all, time.Since(start), last) })
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

// print writes how many parts are done and, from the time they took, how long the rest will take.
func (p *progress) print(w io.Writer, what string, all int64, took time.Duration, last bool) {
	done := p.done.Load()
	switch {
	case last:
		fmt.Fprintf(w, "%s: %d of %d parts in %v\n", what, done, all, took.Round(time.Second))
	case done > 0:
		left := time.Duration(float64(took) / float64(done) * float64(all-done))
		fmt.Fprintf(w, "%s: %d of %d parts, about %v left\n", what, done, all, left.Round(time.Second))
	}
}

// steps notes that n are done, and returns at once.
func (p *progress) steps(n int64) { p.done.Store(n) }
