// Package interrupt ends a command at a signal to stop. The first signal ends the command's context, and the command
// finishes: steps that progress and outputs that are written have no time limit. Only operations that may hang, such as
// a driver call or a wait for another process, have one. The second signal ends the command at once, unless it repeats
// the first within a moment.
package interrupt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/halox/halox/internal/files"
)

// ErrInterrupted is the error of an interrupted command.
var ErrInterrupted = errors.New("interrupted")

const (
	// stopTime is how long a command may take without progress after a signal, unless Patience or Limit says otherwise.
	// One call of a driver takes seconds on a host where other processes start and end. Container engines kill after 10
	// s.
	stopTime = 8 * time.Second
	// noteTime is the time after a signal at which a command that continues says so.
	noteTime = 2 * time.Second
	// keepTime is the time limit for writing partial results of a command that did not stop.
	keepTime = 700 * time.Millisecond
	// togetherTime is stopTime for one of several processes: mpirun of Open MPI 4 kills them a second after its signal.
	togetherTime = 600 * time.Millisecond
	// look is the interval of checks for progress. Time is counted in these intervals, so that a busy or suspended
	// machine does not look like a hanging command.
	look = 50 * time.Millisecond
	// sameTime is how long the same signal counts as the first one: timeout(1) sends it to a process and to its group.
	sameTime = 200 * time.Millisecond
	// gaps is the limit without progress, as a multiple of the longest time between two signs of progress so far.
	gaps = 4
)

// None disables the limit, for a phase that cannot hang.
const None = time.Duration(math.MaxInt64)

// Watch ends one command at a signal to stop.
type Watch struct {
	ctx     context.Context // of the command
	cancel  context.CancelFunc
	signals chan os.Signal
	notes   io.Writer

	mu       sync.Mutex      // of what follows
	stops    bool            // the command observes its context
	doing    string          // "stepping"
	keep     func() string   // writes partial results, and describes them
	patience time.Duration   // the limit of phases that set none
	limit    time.Duration   // of this phase
	busy     func() bool     // reports work of this phase that cannot hang; may be nil
	quiet    bool            // prints nothing
	verbose  bool            // prints each phase
	pass     func(os.Signal) // takes the signals instead; may be nil
	begun    time.Time       // when Verbose was called
	progress int64           // grows with each sign of progress
	last     time.Time       // time of the last sign of progress in the phase
	longest  time.Duration   // longest time between two signs of the phase
}

// watchKey is the key of the watch in a command's context.
type watchKey struct{}

// Catch handles the signals to stop from now on, except those that were ignored when this process started, as by nohup.
func Catch(parent context.Context, notes io.Writer) *Watch {
	w := &Watch{signals: make(chan os.Signal, 2), notes: notes, patience: stopTime}
	ctx, cancel := context.WithCancel(parent)
	w.ctx, w.cancel = context.WithValue(ctx, watchKey{}, w), cancel
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(w.signals, s)
		}
	}
	return w
}

// Run runs a command with a context that ends at the first signal. At the second, or without progress within the limit
// of its phase, the command is abandoned after its partial results are written: the caller then ends the process. The
// third has its default effect.
func (w *Watch) Run(command func(ctx context.Context) error) error {
	defer w.cancel()
	defer signal.Stop(w.signals)
	done := make(chan error, 1)
	go func() { done <- command(w.ctx) }()
	var s os.Signal
	for passed := true; passed; {
		select {
		case err := <-done:
			return Outcome(w.ctx, err)
		case s = <-w.signals:
			passed = w.passOn(s)
		}
	}
	first := time.Now()
	w.cancel()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	limit, seen := stopTime, int64(-1)
	for silent, stopping := time.Duration(0), time.Duration(0); silent < limit; {
		select {
		case err := <-done:
			return Outcome(w.ctx, err)
		case again := <-w.signals:
			if again != s || time.Since(first) > sameTime {
				limit = 0
			}
			continue
		case <-ticks.C:
		}
		if !w.mu.TryLock() {
			continue // in Whole
		}
		if silent += look; w.progress != seen || w.busy != nil && w.busy() {
			silent = 0
		}
		limit, seen = w.limitNow(), w.progress
		if stopping += look; stopping == noteTime && !w.quiet { // without waiting for a terminal
			go fmt.Fprintf(w.notes, "%v: still %s; the next signal ends it at once\n", s, w.doing)
		}
		w.mu.Unlock()
	}
	signal.Stop(w.signals)
	w.force(s)
	return ErrInterrupted
}

// passOn gives a signal to the function of Pass. It returns false if there is none.
func (w *Watch) passOn(s os.Signal) bool {
	w.mu.Lock()
	pass := w.pass
	w.mu.Unlock()
	if pass != nil {
		pass(s)
	}
	return pass != nil
}

// limitNow returns the time limit until the next sign of progress, 0 if the command does not observe its context.
func (w *Watch) limitNow() time.Duration {
	if !w.stops {
		return 0
	}
	return max(w.limit, min(gaps*w.longest, time.Hour))
}

// force writes the partial results and prints what the command was doing, within keepTime. It first waits for the end
// of Whole.
func (w *Watch) force(s os.Signal) {
	w.mu.Lock() // never unlocked: the command does not continue
	files.Abandon()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		doing, kept := "", ""
		if w.doing != "" {
			doing = " while " + w.doing
		}
		if w.keep != nil {
			kept = w.keep()
		}
		if !w.quiet {
			fmt.Fprintf(w.notes, "%v: ended by force%s%s\n", s, doing, kept)
		}
	}()
	select {
	case <-ended:
	case <-time.After(keepTime):
	}
	files.Abandon() // outputs that keep, or the interrupted command, was still writing
}

// change calls do with the watch of a command's context, if there is one.
func change(ctx context.Context, do func(w *Watch)) {
	if w, ok := ctx.Value(watchKey{}).(*Watch); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		do(w)
	}
}

// During begins a phase of a command that observes its context. doing describes it. If the phase is ended by force,
// keep writes partial results and describes them, for example "; r.json has the rows until then". It may be nil. keep
// is called by another goroutine.
func During(ctx context.Context, doing string, keep func() string) {
	var notes io.Writer
	var took time.Duration
	change(ctx, func(w *Watch) {
		if w.verbose && !w.quiet && doing != "" && doing != w.doing {
			notes, took = w.notes, time.Since(w.begun)
		}
		w.stops, w.doing, w.keep, w.busy, w.limit = true, doing, keep, nil, w.patience
		w.progress, w.longest, w.last = w.progress+1, 0, time.Time{}
	})
	if notes != nil { // not under the lock: a terminal may block
		fmt.Fprintf(notes, "%7.3f s  %s\n", took.Seconds(), doing)
	}
}

// Verbose prints each phase that During begins from now on, with the time since now.
func Verbose(ctx context.Context) {
	change(ctx, func(w *Watch) { w.verbose, w.begun = true, time.Now() })
}

// Notes sets where this package writes.
func Notes(ctx context.Context, notes io.Writer) { change(ctx, func(w *Watch) { w.notes = notes }) }

// Limit sets how long the current phase may take without progress after a signal: None if it cannot hang, 0 for the
// limit of Patience.
func Limit(ctx context.Context, limit time.Duration) {
	change(ctx, func(w *Watch) {
		if w.progress, w.limit = w.progress+1, limit; limit == 0 {
			w.limit = w.patience
		}
	})
}

// Busy sets, for the current phase, a function that reports work that takes time and cannot hang, such as compiling:
// the limit does not apply while it returns true. It is called by another goroutine, and must not call functions of
// this package.
func Busy(ctx context.Context, busy func() bool) {
	change(ctx, func(w *Watch) { w.busy = busy })
}

// Progress is a sign of progress. If signs are rare, the limit is longer.
func Progress(ctx context.Context) {
	change(ctx, func(w *Watch) {
		now := time.Now()
		if !w.last.IsZero() {
			w.longest = max(w.longest, now.Sub(w.last))
		}
		w.progress, w.last = w.progress+1, now
	})
}

// Patience sets the limit of all following phases that have none from Limit.
func Patience(ctx context.Context, limit time.Duration) {
	change(ctx, func(w *Watch) { w.limit, w.patience, w.progress = limit, limit, w.progress+1 })
}

// Together declares that a command runs as one of several processes, which their launcher ends too. Only the first of
// them prints.
func Together(ctx context.Context, first bool) {
	change(ctx, func(w *Watch) { w.patience, w.quiet = togetherTime, !first })
}

// Quiet suppresses the message about an end by force: the command has printed its error.
func Quiet(ctx context.Context) { change(ctx, func(w *Watch) { w.quiet = true }) }

// Whole calls do, which an end by force does not interrupt: do must be short, and must not call other functions of this
// package.
func Whole(ctx context.Context, do func()) {
	called := false
	change(ctx, func(*Watch) { called = true; do() })
	if !called {
		do()
	}
}

// Doing returns the description of the current phase, "" before the first.
func Doing(ctx context.Context) (what string) {
	change(ctx, func(w *Watch) { what = w.doing })
	return what
}

// Outcome returns ErrInterrupted for the error of an ended context, and other errors unchanged.
func Outcome(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ErrInterrupted
	}
	return err
}
