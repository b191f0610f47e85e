package halo

import (
	"errors"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Accumulator runs the exchange of a plan in reverse: the ghosts of every subdomain
// are added to the points that they stand for, and stay as they are. It is the
// adjoint of the exchange, which scatters of particles and of finite elements, and
// gradients, need.
//
// Start, Wait and Exchange are those of an Exchanger, but restrict what may be done in
// between: owned points that neighbours hold as ghosts are neither read nor
// written, and ghosts not written. What several neighbours add to one point is
// added in the order of the plan, so that the sums have the same bits every time.
// Sums of whole numbers wrap.
type Accumulator struct{ e *Exchanger }

// NewAccumulator prepares adding the ghosts of the fields, one for each Spec of the plan and in that order. It is
// an error if their elements are not numbers. Messages take the paths of the plan, in reverse. Close frees what it
// holds. Where several processes share the grid, all call it, as NewExchanger.
func NewAccumulator(plan *Plan, c *kernels.Compiler, fields ...*Field) (*Accumulator, error) {
	e, err := newExchanger(plan, c, fields, true)
	if err != nil {
		return nil, err
	}
	return &Accumulator{e}, nil
}

var errNoAccumulator = errors.New("halo: the accumulator is nil: see NewAccumulator")

// Start queues the sums and returns; see Exchanger.Start.
func (a *Accumulator) Start(at []*streams.Stream) error {
	if a == nil {
		return errNoAccumulator
	}
	return a.e.Start(at)
}

// Wait makes the streams wait for them, on the devices; see Exchanger.Wait.
func (a *Accumulator) Wait(at []*streams.Stream) error {
	if a == nil {
		return errNoAccumulator
	}
	return a.e.Wait(at)
}

// Exchange is Start and Wait.
func (a *Accumulator) Exchange(at []*streams.Stream) error {
	if a == nil {
		return errNoAccumulator
	}
	return a.e.Exchange(at)
}

// Close frees what it holds, see Exchanger.Close.
func (a *Accumulator) Close() error {
	if a == nil {
		return nil
	}
	return a.e.Close()
}
