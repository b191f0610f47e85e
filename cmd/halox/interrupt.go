package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
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
