package packing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// engine is the implementation of an Engine.
type engine struct {
	name     Engine
	revision int // changes with its kernels, so that the engines are measured again
	// ready makes a job of a non-empty task, or returns ErrUnsuited if the engine does not support it. Data
	// that the engine keeps on the device for further jobs goes through cached.
	ready func(p *Packer, j *Job, t *task) error
}

// namesOf returns the names of engines.
func namesOf(all []engine) (names []Engine) {
	for _, e := range all {
		names = append(names, e.name)
	}
	return names
}

// Packer makes jobs for one device. It keeps its tables of a layout (lists of blocks and trees) on the device
// until it is closed, and reuses them for all jobs with that layout. Close frees it; close its jobs first.
type Packer struct {
	resources streams.Resources
	engines   []engine // in display order
	device    *streams.Device
	options   Options
	compiler  *kernels.Compiler
	copier    *pack.BoxCopier
	blocks    *pack.BlockPacker
	units     *pack.UnitPacker
	trees     *pack.TreePacker
	layouts   layoutCache
}

var errNoDevice = errors.New("packing: the device is nil")

// newPacker makes a packer with the given engines.
func newPacker(c *kernels.Compiler, d *streams.Device, o Options, engines []engine) (*Packer, error) {
	switch {
	case c == nil:
		return nil, errors.New("packing: the compiler is nil: see kernels.NewCompiler")
	case d == nil:
		return nil, errNoDevice
	}
	p := &Packer{engines: engines, device: d, options: o, compiler: c}
	var errs [3]error
	p.copier, errs[0] = pack.NewBoxCopier(c, d)
	p.blocks, errs[1] = pack.NewBlockPacker(c, d)
	p.trees, errs[2] = pack.NewTreePacker(c, d)
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	streams.Into(&p.resources, &p.units)(pack.NewUnitPacker(c, d))
	return p, p.resources.Done()
}

// Close frees the packer. Closing twice is not an error.
func (p *Packer) Close() error { return p.resources.Close() }

// layoutCache holds the tables of a packer on its device, by layout or type.
type layoutCache struct {
	mu    sync.Mutex
	items map[any]any
}

// The keys of a layout cache.
type (
	blocksKey struct {
		layout datatype.Key
		equal  bool
	}
	unitsKey struct{ layout datatype.Key }
	equalKey struct {
		t     *datatype.Type
		count int
	}
	treeKey struct {
		t         *datatype.Type
		count     int
		alignment int64
	}
)

// jobOf prepares a task for an engine other than Auto.
func (p *Packer) jobOf(e Engine, t *task) (*Job, error) {
	i := slices.IndexFunc(p.engines, func(one engine) bool { return one.name == e })
	if i < 0 {
		return nil, fmt.Errorf("packing: the engine must be one of %v or auto, got %q", namesOf(p.engines), e)
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
