package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Init starts MPI, unless the program has, and returns a communicator of its own of all
// processes. It waits for the others, at most that long. The library must provide
// MPI_THREAD_MULTIPLE. It can be called once.
func (l *Library) Init(ctx context.Context, limit time.Duration) (*Comm, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	switch begun, err := l.begun(); {
	case err != nil:
		return nil, err
	case begun && l.main != nil:
		return nil, errors.New("mpi: Init was called before")
	case begun:
		return l.adopt(ctx, limit, l.handles.world)
	}
	m, err := l.start(ctx, limit)
	if err != nil {
		return nil, err
	}
	l.main = m
	world := &Comm{library: l, handle: l.handles.world}
	if err := world.returnErrors(); err != nil {
		return nil, err
	}
	return l.adopt(ctx, limit, l.handles.world)
}

// Lend returns a copy of a communicator of a program that has started MPI itself, with
// MPI_THREAD_MULTIPLE, and that ends it, after Free. All processes of the communicator must
// call it, and it waits for them, at most that long. The handle is that of the library's own interface: an int in MPICH, else a pointer.
func (l *Library) Lend(ctx context.Context, limit time.Duration, comm Handle) (*Comm, error) {
	begun, err := l.begun()
	if err != nil {
		return nil, err
	}
	if !begun {
		return nil, fmt.Errorf("mpi: a communicator was lent, but %s has not been started", l)
	}
	if comm == 0 || comm == l.handles.null {
		return nil, errors.New("mpi: the communicator that was lent is MPI_COMM_NULL")
	}
	return l.adopt(ctx, limit, comm)
}

// begun reports whether MPI runs. It is an error if it has ended.
func (l *Library) begun() (bool, error) {
	over, err := l.asks(fFinalized)
	if err != nil {
		return false, err
	}
	if over != 0 {
		return false, fmt.Errorf("mpi: %s has ended: it cannot be started again", l)
	}
	begun, err := l.asks(fInitialized)
	return begun != 0, err
}

// adopt copies a communicator of MPI that runs.
func (l *Library) adopt(ctx context.Context, limit time.Duration, comm Handle) (*Comm, error) {
	provided, err := l.asks(fQueryThread)
	if err != nil {
		return nil, err
	}
	if err := l.manyThreads(provided); err != nil {
		return nil, err
	}
	return (&Comm{library: l, handle: comm}).Dup(ctx, limit)
}

// Finalize ends MPI where Init has started it, and waits for the other processes to do so, at
// most that long. No request may be open. Where a process has failed do without it: see Abort.
func (l *Library) Finalize(ctx context.Context, limit time.Duration) error {
	l.lock.Lock()
	m := l.main
	l.main = nil
	l.lock.Unlock()
	if m == nil {
		return nil
	}
	return m.finish(ctx, limit)
}
