package packing

import (
	"errors"
	"fmt"
	"io"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
)

// The engines that have a table of the layout on the device.
const (
	Bypass Engine = "bypass" // the list of blocks on the device, scanned there (HAND's HB)
	Units  Engine = "units"  // equal work units, cut by the CPU, a warp each (Wu et al. 3.2)
	Tree   Engine = "tree"   // the serialised type tree, an element a thread (Jenkins et al.)
)

var (
	bypassEngine = engine{Bypass, 1, (*Packer).bypass}
	unitsEngine  = engine{Units, 1, (*Packer).inUnits}
	treeEngine   = engine{Tree, 1, (*Packer).alongTree}
)

// maxListed is how many blocks a list on a device may have.
const maxListed = 1 << 22

// cached returns what a packer's layout cache holds for the key, or else puts there what make
// makes. It is freed with the packer.
func cached[T io.Closer](p *Packer, key any, make func() (T, error)) (T, error) {
	p.layouts.mu.Lock()
	defer p.layouts.mu.Unlock()
	if found, ok := p.layouts.items[key]; ok {
		return found.(T), nil
	}
	made, err := make()
	if err != nil {
		return made, err
	}
	if p.layouts.items == nil {
		p.layouts.items = map[any]any{}
	}
	p.layouts.items[key] = made
	p.resources.Add(made)
	return made, nil
}

// listOf returns all blocks of a layout.
func listOf(l *datatype.Layout) ([]pack.Block, error) {
	if n := l.NumBlocks(); n > maxListed {
		return nil, fmt.Errorf("%w: it has %d blocks; a list may have %d", ErrUnsuited, n, maxListed)
	}
	list := make([]pack.Block, 0, l.NumBlocks())
	for _, b := range l.Blocks() {
		list = append(list, pack.Block{Displacement: b.Displacement, Length: b.Length})
	}
	return list, nil
}

// blockTable returns the layout's list of blocks on the device.
func (p *Packer) blockTable(l *datatype.Layout, equal bool) (*pack.BlockTable, error) {
	return cached(p, blocksKey{l.Key(), equal}, func() (*pack.BlockTable, error) {
		list, err := listOf(l)
		if err != nil {
			return nil, err
		}
		return p.blocks.Table(list, p.options.listed(equal))
	})
}

// uniform makes a job of the kernel for blocks of one length, from a list of them.
func (p *Packer) uniform(j *Job, t *task, list []pack.Block) error {
	table, err := cached(p, equalKey{t.message.Type, t.message.Count}, func() (*pack.BlockTable, error) {
		return p.blocks.Table(list, p.options.listed(true))
	})
	if err != nil {
		return err
	}
	return j.bind(table, t)
}

// equalBlocks returns the blocks of an indexed_block type as it lists them: in the layout
// those that touch are one, and the blocks not of one length any more. It is nil for other
// types, and where blocks have gaps.
func (c *MessageLayout) equalBlocks() (list []pack.Block) {
	if c.Type == nil {
		return nil
	}
	e := c.Type.Envelope()
	unit := int64(1)
	switch e.Combiner {
	case datatype.IndexedBlockCombiner:
		unit = e.Types[0].Extent()
	case datatype.HIndexedBlockCombiner:
	default:
		return nil
	}
	element := e.Types[0]
	dense := element.Size() == element.Extent() && element.TrueLB() == 0 && element.TrueExtent() == element.Size()
	n := int64(len(e.Displacements)) * int64(c.Count)
	if !dense || n == 0 || n > maxListed {
		return nil
	}
	for i := range int64(c.Count) {
		for _, d := range e.Displacements {
			list = append(list, pack.Block{Displacement: i*c.Type.Extent() + d*unit, Length: int64(e.BlockLength) * element.Size()})
		}
	}
	return list
}

// bypass makes a job of the kernel that gets the list of blocks as it is.
func (p *Packer) bypass(j *Job, t *task) error { return p.listed(j, t, false) }

func (p *Packer) listed(j *Job, t *task, equal bool) error {
	table, err := p.blockTable(t.message.Layout, equal)
	if err != nil {
		return err
	}
	return j.bind(table, t)
}

// bind makes a job of a list on the device.
func (j *Job) bind(table *pack.BlockTable, t *task) error {
	make := func() (*pack.BlockCopy, error) { return table.Pack(t.packed, t.place.Data, t.place.Origin) }
	if t.unpack {
		make = func() (*pack.BlockCopy, error) { return table.Unpack(t.place.Data, t.place.Origin, t.packed) }
	}
	c, err := make()
	if err != nil {
		return err
	}
	j.resources.Add(c)
	j.queue = c.Queue
	return nil
}

// inUnits makes a job of units of work.
func (p *Packer) inUnits(j *Job, t *task) error {
	table, err := cached(p, unitsKey{t.message.Layout.Key()}, func() (*pack.UnitTable, error) {
		list, err := listOf(t.message.Layout)
		if err != nil {
			return nil, err
		}
		return p.units.Table(list, pack.UnitOptions{Unit: p.options.UnitBytes, MaxBlocks: p.options.Blocks})
	})
	if err != nil {
		return err
	}
	var c *pack.UnitCopy
	if t.unpack {
		c, err = table.Unpack(t.place.Data, t.place.Origin, t.packed)
	} else {
		c, err = table.Pack(t.packed, t.place.Data, t.place.Origin)
	}
	if err != nil {
		return err
	}
	j.resources.Add(c)
	j.queue = c.Queue
	return nil
}

// alongTree makes a job in which every thread finds its element along the type tree.
func (p *Packer) alongTree(j *Job, t *task) error {
	if t.message.Type == nil {
		return fmt.Errorf("%w: a fragment has no tree", ErrUnsuited)
	}
	key := treeKey{t.message.Type, t.message.Count, t.alignment()}
	table, err := cached(p, key, func() (*pack.TreeTable, error) {
		tree, err := serialise(key.t, key.count, treeOptions{Primitive: p.options.Primitive, Alignment: key.alignment})
		if err != nil {
			return nil, err
		}
		return p.trees.Table(tree)
	})
	if errors.Is(err, pack.ErrTreeTooLarge) {
		return fmt.Errorf("%w: %w", ErrUnsuited, err)
	}
	if err != nil {
		return err
	}
	l := pack.TreeLaunch{Name: t.name(), User: t.place.Data, Origin: t.place.Origin, Packed: t.packed, Blocks: p.options.Blocks}
	if t.unpack {
		return j.launch(table.Unpack(l))
	}
	return j.launch(table.Pack(l))
}
