package mpi

import "context"

// Err returns the first failure of any process that this one has learnt of, nil as long as all
// goes well.
func (p *Processes) Err() error { return p.failure.err() }

// Context returns a context that ends with the first failure, which is its cause.
func (p *Processes) Context() context.Context { return p.failure.ctx }

// Fail tells all processes that this one has failed, and why. What they wait for with others
// ends with a *RemoteError. Only the first failure counts. It returns the error.
func (p *Processes) Fail(err error) error {
	if p.watch == nil { // this process is alone
		return err
	}
	p.watch.fail(err)
	return err
}
