package packing

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// The engines of strided pieces.
const (
	// one kernel for a strided piece or for blocks of one length (Wu et al. 3.1, HAND's TK)
	Targeted  Engine = "targeted"
	Transform Engine = "transform" // a list of vectors (HAND's TR)
)

var (
	targetedEngine  = engine{Targeted, 1, (*Packer).targeted}
	transformEngine = engine{Transform, 1, (*Packer).transform}
)

// strided returns the copy of a piece.
func (t *task) strided(p *datatype.Piece) pack.Strided {
	s := pack.Strided{
		Dst:    pack.Point{Data: t.packed, Offset: p.Offset},
		Src:    pack.Point{Data: t.place.Data, Offset: t.place.Origin + p.Displacement},
		Length: p.Length,
	}
	for _, d := range p.Dims[:p.Rank] {
		s.Dims = append(s.Dims, pack.Dim{Count: d.Count, Dst: d.Packed, Src: d.Stride})
	}
	if t.unpack {
		s = reversed(s)
	}
	return s
}

// reversed returns the copy the other way.
func reversed(s pack.Strided) pack.Strided {
	s.Dst, s.Src = s.Src, s.Dst
	for i := range s.Dims {
		d := &s.Dims[i]
		d.Dst, d.Src = d.Src, d.Dst
	}
	return s
}

// targeted makes a job of one kernel for a shape: a strided piece of up to four dimensions, such as vectors
// and subarrays in either order, or blocks of one length.
func (p *Packer) targeted(j *Job, t *task) error {
	l := t.message.Layout
	switch {
	case l.Strided() && len(l.Pieces()) == 1 && p.options.Lanes == 0:
		return p.move(j, t, []pack.Strided{t.strided(&l.Pieces()[0])})
	case (!l.Strided() || p.options.Lanes > 0) && l.MinBlock() == l.MaxBlock():
		return p.listed(j, t, true)
	}
	if list := t.message.equalBlocks(); list != nil {
		return p.uniform(j, t, list)
	}
	return fmt.Errorf("%w: the layout is neither one strided piece nor blocks of one length", ErrUnsuited)
}

// transform makes a job of vectors: the pieces of a strided layout, or the vectors in a list of blocks. HAND
// launches a kernel for each; here one kernel handles all, without Options.Each.
func (p *Packer) transform(j *Job, t *task) error {
	l := t.message.Layout
	if !l.Strided() {
		vectors, err := t.vectors()
		if err != nil {
			return err
		}
		return p.moveEach(j, t, vectors)
	}
	var all []pack.Strided
	for i := range l.Pieces() {
		all = append(all, t.strided(&l.Pieces()[i]))
	}
	return p.moveEach(j, t, all)
}

// moveEach makes a job of one launch for all copies or, with Options.Each, of a launch for each.
func (p *Packer) moveEach(j *Job, t *task, all []pack.Strided) error {
	if !p.options.Each {
		return p.move(j, t, all)
	}
	if len(all) > maxCopies {
		return fmt.Errorf("%w: it needs more than %d launches", ErrUnsuited, maxCopies)
	}
	var jobs []*Job
	for i := range all {
		one := &Job{Engine: j.Engine}
		if err := p.move(one, t, all[i:i+1]); err != nil {
			j.follow(jobs)
			return err
		}
		jobs = append(jobs, one)
	}
	j.follow(jobs)
	return nil
}

// move makes a job of one launch for all copies.
func (p *Packer) move(j *Job, t *task, all []pack.Strided) error {
	c, err := p.copier.Strided(t.name(), p.options.strided(), all...)
	if err != nil {
		return err
	}
	j.resources.Add(c)
	return j.launch(c.Kernel, nil)
}

// maxVectors is the maximum number of vectors in a list.
const maxVectors = 1 << 16

// vectors divides a list of blocks into vectors: blocks of one length at equal distances.
func (t *task) vectors() (all []pack.Strided, err error) {
	list := t.message.Layout.List()
	offset := int64(0)
	for len(list) > 0 {
		n, stride := vectorLength(list)
		v := datatype.Piece{Displacement: list[0].Displacement, Offset: offset, Length: list[0].Length, Rank: 1}
		v.Dims[0] = datatype.Dim{Count: int64(n), Stride: stride, Packed: list[0].Length}
		if all = append(all, t.strided(&v)); len(all) > maxVectors {
			return nil, fmt.Errorf("%w: must have at most %d vectors", ErrUnsuited, maxVectors)
		}
		offset += int64(n) * list[0].Length
		list = list[n:]
	}
	return all, nil
}

// vectorLength returns how many of the first blocks form a vector, and their distance.
func vectorLength(list []datatype.Block) (n int, stride int64) {
	if len(list) == 1 || list[1].Length != list[0].Length {
		return 1, 0
	}
	stride = list[1].Displacement - list[0].Displacement
	n = 2
	for n < len(list) && list[n].Length == list[0].Length && list[n].Displacement-list[n-1].Displacement == stride {
		n++
	}
	return n, stride
}

// The engines with a table of the layout on the device.
const (
	Bypass Engine = "bypass" // list of blocks, scanned on the device (HAND's HB)
	Units  Engine = "units"  // equal work units made by the CPU, one per warp (Wu et al. 3.2)
	Tree   Engine = "tree"   // serialized type tree, one element per thread (Jenkins et al.)
)

var (
	bypassEngine = engine{Bypass, 1, (*Packer).bypass}
	unitsEngine  = engine{Units, 1, (*Packer).inUnits}
	treeEngine   = engine{Tree, 1, (*Packer).alongTree}
)

// maxListed is the maximum number of blocks in a list on a device.
const maxListed = 1 << 22

// cached returns the entry of the packer's layout cache for the key, or makes and stores one. It is freed
// with the packer. With Options.Uncached it makes one that is freed with the job.
func cached[T io.Closer](p *Packer, j *Job, key any, make func() (T, error)) (T, error) {
	if p.options.Uncached {
		made, err := make()
		if err == nil {
			j.resources.Add(made)
		}
		return made, err
	}
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
		return nil, fmt.Errorf("%w: it must have at most %d blocks, got %d", ErrUnsuited, maxListed, n)
	}
	list := make([]pack.Block, 0, l.NumBlocks())
	for _, b := range l.Blocks() {
		list = append(list, pack.Block{Displacement: b.Displacement, Length: b.Length})
	}
	return list, nil
}

// uniform makes a job of the kernel for blocks of one length, from a list of them.
func (p *Packer) uniform(j *Job, t *task, list []pack.Block) error {
	table, err := cached(p, j, equalKey{t.message.Type, t.message.Count}, func() (*pack.BlockTable, error) {
		return p.blocks.Table(list, p.options.listed(true))
	})
	return p.alongList(j, t, table, err)
}

// equalBlocks returns the blocks of an indexed_block type in their listed form: the layout joins adjacent
// blocks, so its blocks may have different lengths. It is nil for other types, and if blocks have gaps.
func (m *MessageLayout) equalBlocks() (list []pack.Block) {
	if m.Type == nil {
		return nil
	}
	e := m.Type.Envelope()
	if e.Combiner != datatype.IndexedBlockCombiner && e.Combiner != datatype.HIndexedBlockCombiner {
		return nil
	}
	element := e.Types[0]
	dense := element.Size() == element.Extent() && element.TrueLB() == 0 && element.TrueExtent() == element.Size()
	n := int64(len(e.Displacements)) * int64(m.Count)
	if !dense || n == 0 || n > maxListed {
		return nil
	}
	for i := range int64(m.Count) {
		for b := range e.Displacements {
			at, length, _ := e.Block(b)
			at += i * m.Type.Extent()
			list = append(list, pack.Block{Displacement: at, Length: int64(length) * element.Size()})
		}
	}
	return list
}

// bypass makes a job of the kernel that uses the list of blocks directly.
func (p *Packer) bypass(j *Job, t *task) error { return p.listed(j, t, false) }

func (p *Packer) listed(j *Job, t *task, equal bool) error {
	l := t.message.Layout
	table, err := cached(p, j, blocksKey{l.Key(), equal}, func() (*pack.BlockTable, error) {
		list, err := listOf(l)
		if err != nil {
			return nil, err
		}
		return p.blocks.Table(list, p.options.listed(equal))
	})
	return p.alongList(j, t, table, err)
}

// alongList makes a job of the kernel that uses a list of blocks, after the copy of the list if it is uploaded.
func (p *Packer) alongList(j *Job, t *task, table *pack.BlockTable, err error) error {
	if err != nil {
		return err
	}
	if err := j.launch(table.Kernel(t.passage())); err != nil || !p.options.Upload {
		return err
	}
	launch := j.queue
	j.most, j.queue = 3, func(s *streams.Stream) error { return cmp.Or(table.Upload(s), launch(s)) }
	return nil
}

// passage binds the task's blocks to its memory.
func (t *task) passage() pack.Passage {
	return pack.Passage{Packed: t.packed, Strided: t.place.Data, Origin: t.place.Origin, Unpack: t.unpack}
}

// inUnits makes a job of work units.
func (p *Packer) inUnits(j *Job, t *task) error {
	table, err := cached(p, j, unitsKey{t.message.Layout.Key()}, func() (*pack.UnitTable, error) {
		list, err := listOf(t.message.Layout)
		if err != nil {
			return nil, err
		}
		return p.units.Table(list, p.options.units())
	})
	if err != nil {
		return err
	}
	return j.inUnits(table, t.passage())
}

// inUnits returns a job that copies a table's units.
func (j *Job) inUnits(table *pack.UnitTable, p pack.Passage) error {
	c, err := table.Copy(p)
	if err != nil {
		return err
	}
	j.resources.Add(c)
	j.queue = c.Queue
	return nil
}

// alongTree makes a job in which every thread finds its element by walking the type tree.
func (p *Packer) alongTree(j *Job, t *task) error {
	if t.message.Type == nil {
		return fmt.Errorf("%w: a fragment has no type tree", ErrUnsuited)
	}
	key := treeKey{t.message.Type, t.message.Count, t.alignment()}
	table, err := cached(p, j, key, func() (*pack.TreeTable, error) {
		tree, err := serialize(key.t, key.count, treeOptions{Primitive: p.options.Primitive, Alignment: key.alignment})
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
	return j.launch(table.Kernel(t.passage(), p.options.Blocks))
}
