package halo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// NewExchanger makes ready to exchange the fields, one for each Spec of the plan
// and in that order. Close frees what it holds. Where several processes share the grid, all
// call it, in the same order as for other plans, and where one cannot do it, all return an error.
func NewExchanger(plan *Plan, c *kernels.Compiler, fields ...*Field) (x *Exchanger, err error) {
	made, err := newExchanger(plan, c, fields)
	if err = plan.agree("make an exchange of fields", err); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if err := made.joinProcesses(); err != nil {
		return nil, err
	}
	if err := made.agree(made.makeReady(c)); err != nil {
		return nil, err
	}
	return made, nil
}

// makeReady makes all that an exchange needs.
func (x *Exchanger) makeReady(c *kernels.Compiler) error {
	if err := errors.Join(x.addCopiers(c), x.addPackers(c)); err != nil {
		return err
	}
	for _, m := range x.plan.Messages {
		t, err := x.newTransfer(m)
		if err != nil {
			return fmt.Errorf("halo: message from subdomain %d in %v: %w", m.From, m.Dir, err)
		}
		x.transfers = append(x.transfers, t)
	}
	return x.makeDirect(c)
}

// newExchanger makes an exchanger that has no transfers yet, of what suits each other.
func newExchanger(plan *Plan, c *kernels.Compiler, fields []*Field) (*Exchanger, error) {
	if err := plan.fits(fields); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errNoCompiler
	}
	return &Exchanger{plan: plan, fields: slices.Clone(fields), copiers: map[*streams.Device]*pack.BoxCopier{}}, nil
}

var errNoCompiler = errors.New("halo: the compiler is nil: see kernels.NewCompiler")

// addCopiers makes what copies on each device.
func (x *Exchanger) addCopiers(c *kernels.Compiler) (err error) {
	for _, d := range x.plan.Placement.Devices {
		if d == nil || x.copiers[d] != nil {
			continue
		}
		if x.copiers[d], err = pack.NewBoxCopier(c, d); err != nil {
			return err
		}
	}
	return nil
}
