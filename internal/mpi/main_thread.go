package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// mainThread is the thread that starts MPI and ends it: MPI wants one thread for both.
type mainThread struct {
	end   chan struct{} // closed to have MPI ended
	ended chan error    // of MPI_Finalize
}

// start calls MPI_Init_thread on a thread of its own, and returns when it has come back.
// Where it does not within the limit, as when a link between hosts is down, the thread is left
// behind and MPI is of no use to this process.
func (l *Library) start(ctx context.Context, limit time.Duration) (*mainThread, error) {
	m := &mainThread{end: make(chan struct{}), ended: make(chan error, 1)}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := l.initThread()
		started <- err
		if err != nil {
			return
		}
		<-m.end
		m.ended <- l.finalize()
	}()
	if err := within(ctx, limit, started, "MPI_Init_thread", "for the other processes"); err != nil {
		return nil, err
	}
	return m, nil
}

// finish has the thread end MPI.
func (m *mainThread) finish(ctx context.Context, limit time.Duration) error {
	close(m.end)
	return within(ctx, limit, m.ended, "MPI_Finalize", "for the other processes")
}

// within waits for a result of a call that cannot be told to stop.
func within(ctx context.Context, limit time.Duration, done <-chan error, name, with string) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return &LateError{name, with, limit}
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
}

// initThread starts MPI and leaves the signals as they were.
func (l *Library) initThread() error {
	before, err := currentSignals()
	if err != nil {
		return err
	}
	provided, err := l.asks(fInitThread, 0, 0, uintptr(l.handles.multiple))
	if err = errors.Join(err, before.restore()); err != nil {
		return err
	}
	return l.manyThreads(provided)
}

// manyThreads refuses a library that only one thread at a time may call.
func (l *Library) manyThreads(provided int) error {
	if provided < int(l.handles.multiple) {
		return fmt.Errorf("%s provides thread level %d; halox needs MPI_THREAD_MULTIPLE, %d", l, provided, l.handles.multiple)
	}
	return nil
}

func (l *Library) finalize() error {
	before, err := currentSignals()
	if err != nil {
		return err
	}
	if err := l.call(fFinalize, "", arguments{}); err != nil {
		return err
	}
	return errors.Join(l.runHooks(), before.restore())
}
