package packing

import (
	"errors"
	"fmt"
)

// jobOf makes a task ready for an engine other than Auto.
func (p *Packer) jobOf(e Engine, t *task) (*Job, error) {
	make, ok := map[Engine]func(*Job, *task) error{
		Copies: p.copies, Targeted: p.targeted, Transform: p.transform, Bypass: p.bypass, Units: p.inUnits, Tree: p.alongTree,
	}[e]
	if !ok {
		return nil, fmt.Errorf("packing: no engine %q: %v or auto", e, Engines())
	}
	j := &Job{Engine: e}
	if t.message.Layout.Size() == 0 {
		return j, nil
	}
	if err := make(j, t); err != nil {
		return nil, errors.Join(fmt.Errorf("packing: %s by %s: %w", t.name(), e, err), j.Close())
	}
	return j, nil
}
