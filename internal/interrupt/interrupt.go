// Package interrupt ends a command at a signal to stop. The first signal ends the command's context, and the command
// finishes: steps that progress and outputs that are written take the time that they need. A limit holds for what may
// hang alone, such as a call of a driver or a wait for another process. The second signal ends the command at once.
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

// ErrInterrupted is the outcome of a command that was told to stop.
var ErrInterrupted = errors.New("interrupted")

const (
	// stopTime is how long a command may take without progress after a signal, unless Patience or Limit says otherwise.
	stopTime = time.Second
	// keepTime is how long it may take to write what there is, for a command that did not stop.
	keepTime = 700 * time.Millisecond
	// togetherTime is stopTime for one of several processes: mpirun of Open MPI 4 kills them a second after its signal.
	togetherTime = 600 * time.Millisecond
	// look is how often progress is looked at. Time counts in these, so that a machine that is busy or suspended is
	// not taken for a command that hangs.
	look = 50 * time.Millisecond
	// gaps is how many times the longest time between two signs of progress so far a command is waited for.
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

	mu       sync.Mutex    // of what follows
	stops    bool          // the command looks at its context
	doing    string        // "stepping"
	keep     func() string // writes what the command has, and says what was kept
	patience time.Duration // the limit of phases that set none
	limit    time.Duration // of this phase
	busy     func() bool   // reports work of this phase that cannot hang; nil for none
	quiet    bool          // says nothing
	verbose  bool          // prints each phase
	begun    time.Time     // when Verbose was called
	progress int64         // grows with each sign of progress
	last     time.Time     // when the phase gave the last sign
	longest  time.Duration // between two of its signs
}

// watchKey is the key of the watch in a command's context.
type watchKey struct{}

// Catch listens to the signals to stop from now on, except those that this process was started to ignore, as
// nohup does.
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

// Run runs a command with a context that ends at the first signal. At the second, or without progress for the limit of
// what it does, the command is abandoned after what it had is kept: the caller ends the process then. The third has
// its default effect.
func (w *Watch) Run(command func(ctx context.Context) error) error {
	defer w.cancel()
	defer signal.Stop(w.signals)
	done := make(chan error, 1)
	go func() { done <- command(w.ctx) }()
	var s os.Signal
	select {
	case err := <-done:
		return Outcome(w.ctx, err)
	case s = <-w.signals:
	}
	w.cancel()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	limit, seen := stopTime, int64(-1)
	for silent, stopping := time.Duration(0), time.Duration(0); silent < limit; {
		select {
		case err := <-done:
			return Outcome(w.ctx, err)
		case <-w.signals:
			limit = 0
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
		if stopping += look; stopping == 2*stopTime && !w.quiet { // without waiting for a terminal
			go fmt.Fprintf(w.notes, "%v: still %s; the next signal ends it at once\n", s, w.doing)
		}
		w.mu.Unlock()
	}
	signal.Stop(w.signals)
	w.force(s)
	return ErrInterrupted
}

// limitNow returns how long the command may take until the next sign of progress, 0 if it does not look at its context.
func (w *Watch) limitNow() time.Duration {
	if !w.stops {
		return 0
	}
	return max(w.limit, min(gaps*w.longest, time.Hour))
}

// force keeps what the command has and says what it was doing, if keepTime is enough. It first waits for what must not
// be divided, see Whole.
func (w *Watch) force(s os.Signal) {
	w.mu.Lock() // never unlocked: the command goes no further
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
	files.Abandon() // what keep, or what it interrupted, was still writing
}

// change calls do with the watch of a command's context, if it has one.
func change(ctx context.Context, do func(w *Watch)) {
	if w, ok := ctx.Value(watchKey{}).(*Watch); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		do(w)
	}
}

// During says what a command does from now on, for a command that looks at its context. If it is ended by force then,
// keep writes what there is and says so, for example "; r.json has the rows until then". It may be nil.
// keep is called by another goroutine.
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
	if notes != nil { // not under the lock: a terminal may take nothing
		fmt.Fprintf(notes, "%7.3f s  %s\n", took.Seconds(), doing)
	}
}

// Verbose prints each phase that During begins from now on, with the time since now.
func Verbose(ctx context.Context) {
	change(ctx, func(w *Watch) { w.verbose, w.begun = true, time.Now() })
}

// Limit says how long what During has said last may take without progress after a signal: None where it cannot hang,
// 0 for what Patience has said.
func Limit(ctx context.Context, limit time.Duration) {
	change(ctx, func(w *Watch) {
		if w.progress, w.limit = w.progress+1, limit; limit == 0 {
			w.limit = w.patience
		}
	})
}

// Busy sets, for the current phase, a function that reports work that takes time and cannot hang, such as compiling: no
// limit applies meanwhile. Another goroutine calls it. It must not call functions of this package.
func Busy(ctx context.Context, busy func() bool) {
	change(ctx, func(w *Watch) { w.busy = busy })
}

// Progress is a sign of progress. Where signs are rare, so is the limit generous.
func Progress(ctx context.Context) {
	change(ctx, func(w *Watch) {
		now := time.Now()
		if !w.last.IsZero() {
			w.longest = max(w.longest, now.Sub(w.last))
		}
		w.progress, w.last = w.progress+1, now
	})
}

// Patience sets the limit of what the command does from now on, where Limit sets none.
func Patience(ctx context.Context, limit time.Duration) {
	change(ctx, func(w *Watch) { w.limit, w.patience, w.progress = limit, limit, w.progress+1 })
}

// Together says that a command runs as one of several processes, which their launcher ends too. Only the first of them
// speaks.
func Together(ctx context.Context, first bool) {
	change(ctx, func(w *Watch) { w.patience, w.quiet = togetherTime, !first })
}

// Quiet says that a command has said what there is to say: it says no more that it is ended by force.
func Quiet(ctx context.Context) { change(ctx, func(w *Watch) { w.quiet = true }) }

// Whole calls do, which is never divided by an end by force: do calls no other function of this package, and takes
// little time.
func Whole(ctx context.Context, do func()) {
	called := false
	change(ctx, func(*Watch) { called = true; do() })
	if !called {
		do()
	}
}

// Doing returns what During said last that a command does, "" at first.
func Doing(ctx context.Context) (what string) {
	change(ctx, func(w *Watch) { what = w.doing })
	return what
}

// Outcome is ErrInterrupted for the error of a context that has ended.
func Outcome(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ErrInterrupted
	}
	return err
}
