package halo

import (
	"errors"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Accumulator runs the exchange of a plan in reverse: it adds the ghosts of every subdomain to the owned
// points that they are copies of. The ghosts keep their values. This is the adjoint of the exchange, as
// needed by particle scatters, finite element assembly and gradients.
//
// Start, Wait and Exchange work as for an Exchanger. Between Start and Wait, owned points that neighbors hold
// as ghosts must be neither read nor written, and ghosts must not be written. Contributions of several
// neighbors to one point are added in the order of the plan, so the sums are bitwise reproducible. Integer
// sums wrap.
type Accumulator struct{ e *Exchanger }

// NewAccumulator prepares adding the ghosts of the fields, one for each Spec of the plan and in that order.
// The elements must be numbers. Messages take the paths of the plan, in reverse. If several processes share
// the grid, all of them call it, as for NewExchanger. Close frees the buffers.
func NewAccumulator(plan *Plan, c *kernels.Compiler, fields ...*Field) (*Accumulator, error) {
	e, err := newExchanger(plan, c, fields, true)
	if err != nil {
		return nil, err
	}
	return &Accumulator{e}, nil
}

var errNoAccumulator = errors.New("halo: the accumulator is nil: see NewAccumulator")

// Start queues the additions and returns; see Exchanger.Start.
func (a *Accumulator) Start(at []*streams.Stream) error {
	if a == nil {
		return errNoAccumulator
	}
	return a.e.Start(at)
}

// Wait makes the streams wait for the additions, on the devices; see Exchanger.Wait.
func (a *Accumulator) Wait(at []*streams.Stream) error {
	if a == nil {
		return errNoAccumulator
	}
	return a.e.Wait(at)
}

// Exchange calls Start and Wait.
func (a *Accumulator) Exchange(at []*streams.Stream) error {
	if a == nil {
		return errNoAccumulator
	}
	return a.e.Exchange(at)
}

// Close frees the buffers; see Exchanger.Close.
func (a *Accumulator) Close() error {
	if a == nil {
		return nil
	}
	return a.e.Close()
}
