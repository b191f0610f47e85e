package mpi

import (
	"context"
	"fmt"
	"sync"
)

// RemoteError is the failure of another process.
type RemoteError struct {
	Rank int
	Host string
	Text string // its error
	Kind error  // the kind that it has in common with errors of this process, see [Processes.Agree]; may be nil
}

// Unwrap returns the kind.
func (e *RemoteError) Unwrap() error { return e.Kind }

// Error names the process.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("rank %d on host %s: %s", e.Rank, e.Host, e.Text)
}

// failure is the first failure that a process has learnt of, its own or another's.
type failure struct {
	ctx   context.Context // which ends with it
	end   context.CancelCauseFunc
	lock  sync.Mutex
	first error
}

func newFailure() *failure {
	ctx, end := context.WithCancelCause(context.Background())
	return &failure{ctx: ctx, end: end}
}

// set keeps the first failure, and reports whether this is it.
func (f *failure) set(err error) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.first != nil || err == nil {
		return false
	}
	f.first = err
	f.end(err)
	return true
}

func (f *failure) err() error {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.first
}
