package halo

import (
	"errors"
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Exchanger holds the buffers and launches that carry out a plan for fields. All
// of it is made by NewExchanger; an exchange makes nothing.
//
// One thread may drive it with Start and Wait, for all devices. Several threads
// drive its Transfers, each its own.
type Exchanger struct {
	resources streams.Resources
	plan      *Plan
	fields    []*Field
	copiers   map[*streams.Device]*kernels.BoxCopier
	transfers []*Transfer               // by message
	direct    []*kernels.DirectExchange // by rank; nil where an exchange takes more
	channels  []*channel                // by rank, made at the first Start
	started   bool
	closed    bool
}

// NewExchanger makes ready to exchange the fields, one for each Spec of the plan
// and in that order. Close frees what it holds.
func NewExchanger(plan *Plan, c *kernels.Compiler, fields ...*Field) (x *Exchanger, err error) {
	made := &Exchanger{plan: plan, fields: fields, copiers: map[*streams.Device]*kernels.BoxCopier{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if err := plan.fits(fields); err != nil {
		return nil, err
	}
	for _, d := range plan.Placement.Devices {
		if made.copiers[d], err = c.NewBoxCopier(d); err != nil {
			return nil, err
		}
	}
	for _, m := range plan.Messages {
		t, err := made.newTransfer(m)
		if err != nil {
			return nil, fmt.Errorf("halo: message from subdomain %d in %v: %w", m.From, m.Dir, err)
		}
		made.transfers = append(made.transfers, t)
	}
	if err := made.makeDirect(c); err != nil {
		return nil, err
	}
	return made, nil
}

// Transfer returns the work of one message of the plan, by its index.
func (x *Exchanger) Transfer(message int) *Transfer { return x.transfers[message] }

// Close frees what the exchanger holds. No exchange may be under way. Closing
// twice is no error.
func (x *Exchanger) Close() error {
	x.closed = true
	return x.resources.Close()
}
