package packing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// engines are all but Auto, in the order in which they are shown. A new one has a file of its
// own and a line here; the tests of packing add one.
func engines() []engine {
	return []engine{copiesEngine, targetedEngine, transformEngine, bypassEngine, unitsEngine, treeEngine}
}

// Engines returns all but Auto.
func Engines() []Engine { return namesOf(engines()) }

// New makes a packer. Close frees it; its jobs are to be closed before.
func New(c *kernels.Compiler, d *streams.Device, o Options) (*Packer, error) {
	return newPacker(c, d, o, engines())
}

// jobOf makes a task ready for an engine other than Auto.
func (p *Packer) jobOf(e Engine, t *task) (*Job, error) {
	i := slices.IndexFunc(p.engines, func(one engine) bool { return one.name == e })
	if i < 0 {
		return nil, fmt.Errorf("packing: no engine %q: %v or auto", e, namesOf(p.engines))
	}
	j := &Job{Engine: e}
	if t.message.Layout.Size() == 0 {
		return j, nil
	}
	if err := p.engines[i].ready(p, j, t); err != nil {
		return nil, errors.Join(fmt.Errorf("packing: %s by %s: %w", t.name(), e, err), j.Close())
	}
	return j, nil
}
