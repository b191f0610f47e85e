package packing

import (
	"errors"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Packer makes jobs for one device. What it puts on the device for a layout, lists of
// blocks and trees, it keeps until it is closed, and uses for all jobs with that layout.
type Packer struct {
	resources streams.Resources
	device    *streams.Device
	options   Options
	compiler  *kernels.Compiler
	copier    *kernels.BoxCopier
	blocks    *kernels.BlockPacker
	units     *kernels.UnitPacker
	trees     *kernels.TreePacker
	layouts   layoutCache
	tunings   tuningCache
}

// New makes a packer. Close frees it; its jobs are to be closed before.
func New(c *kernels.Compiler, d *streams.Device, o Options) (p *Packer, err error) {
	made := &Packer{device: d, options: o, compiler: c}
	made.tunings.open(o.Cache, d)
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if made.copier, err = c.NewBoxCopier(d); err != nil {
		return nil, err
	}
	if made.blocks, err = c.NewBlockPacker(d); err != nil {
		return nil, err
	}
	if made.units, err = c.NewUnitPacker(d); err != nil {
		return nil, err
	}
	made.resources.Add(made.units)
	if made.trees, err = c.NewTreePacker(d); err != nil {
		return nil, err
	}
	return made, nil
}

// Close frees what it holds. Closing twice is no error.
func (p *Packer) Close() error { return p.resources.Close() }
