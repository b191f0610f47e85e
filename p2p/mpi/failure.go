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
}

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

// Err returns the first failure of any process that this one has learnt of, nil as long as all
// goes well.
func (p *Processes) Err() error { return p.failure.err() }

// Context returns a context that ends with the first failure, which is its cause.
func (p *Processes) Context() context.Context { return p.failure.ctx }

// Fail tells all processes that this one has failed, and why. What they wait for with others
// ends with a *RemoteError. Only the first failure counts. It returns the error.
func (p *Processes) Fail(err error) error {
	if p.failure.set(err) {
		p.watch.tell(err)
	}
	return err
}
