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

	"github.com/halox/halox/configs"
	"github.com/halox/halox/kernels"
)

// errInterrupted is the outcome of a command that was told to stop.
var errInterrupted = errors.New("interrupted")

// How long a command goes on after a signal to stop. Together they are less than 2 s.
const (
	stopTime     = time.Second            // for a command that stops in good order
	togetherTime = 600 * time.Millisecond // the same, for one of several processes: mpirun of Open MPI 4 kills them a second after its signal
	keepTime     = 700 * time.Millisecond // to keep what one had that did not
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
	keep    func() string // keeps what the command has, and says what was kept
	several bool          // the command is one of several processes
	waits   bool          // it only waits for another process, see waitingForAnother
}

// interruptsKey is that of the interrupts in a command's context.
type interruptsKey struct{}

// catchInterrupts listens to the signals to stop from now on, but for those that whoever
// started this process has it ignore, as nohup does.
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

// run runs a command with a context that ends at the first signal. A command that has not ended
// some time after that, or at the next signal, is left to itself, with what it had kept: the
// process is to be ended then. The third signal has the effect that it has on any program.
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

// patience is how long after a signal the command may take to stop by itself, by what it does now: 0 where it cannot.
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

// force keeps what the command has, and says what it did, as far as there is time.
func (i *interrupts) force(s os.Signal) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.mu.Lock() // for ever: the command goes no further
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

// during says what a command does from now on, for one that looks at its context. Where it is
// ended by force then, keep keeps what there is and says so, in words such as "; r.json has the
// rows until then"; nil: there is nothing. It is called by a goroutine of its own.
func during(ctx context.Context, doing string, keep func() string) {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stops, i.doing, i.keep = true, doing, keep
}

// oneOfSeveral says that a command runs as one of several processes, whose launcher ends them too.
func oneOfSeveral(ctx context.Context) {
	if i, ok := ctx.Value(interruptsKey{}).(*interrupts); ok {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.several = true
	}
}

// waitingForAnother says that a command has nothing to do from now on but what another process asks of it. That process has limits of
// its own, and a launcher may end it when this one leaves early.
func waitingForAnother(ctx context.Context) {
	if i, ok := ctx.Value(interruptsKey{}).(*interrupts); ok {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.waits = true
	}
}

// doing returns what during said last that a command does, "" at first.
func doing(ctx context.Context) string {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return ""
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.doing
}

// interruption is errInterrupted for the error of a context that has ended.
func interruption(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errInterrupted
	}
	return err
}

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
