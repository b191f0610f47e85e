package pack

import (
	"errors"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// BlockCopy is a copy of the blocks of a table, made ready.
type BlockCopy struct {
	resources streams.Resources
	launches  []*streams.Kernel // of all steps
}

// Queue queues the copy. It may be queued any number of times while its table is open,
// but copies of one table in two steps on one stream at a time.
func (c *BlockCopy) Queue(s *streams.Stream) error {
	for _, k := range c.launches {
		if err := s.Launch(k); err != nil {
			return err
		}
	}
	return nil
}

// Pack makes a copy ready of the blocks, whose displacement 0 lies origin
// bytes into src, to the start of dst. src lies on the packer's device or in pinned
// memory; dst too, or in the memory of a peer that the device can reach. They do not
// overlap. The caller closes it.
func (t *BlockTable) Pack(dst, src streams.Span, origin int64) (*BlockCopy, error) {
	return t.launch("pack a list of blocks", passage{packed: dst, strided: src, origin: origin})
}

// Unpack makes a copy ready of the start of src to the blocks about the
// origin in dst, and touches no other byte. Where blocks overlap it is not said which
// bytes stay. Either side may lie in the memory of a peer; the rest is as for Pack.
func (t *BlockTable) Unpack(dst streams.Span, origin int64, src streams.Span) (*BlockCopy, error) {
	return t.launch("unpack a list of blocks", passage{packed: src, strided: dst, origin: origin, unpack: true})
}

// launch makes the launches of a passage.
func (t *BlockTable) launch(name string, p passage) (*BlockCopy, error) {
	if err := t.extent.fits(p.packed, p.strided, p.origin); err != nil {
		return nil, err
	}
	made := &BlockCopy{}
	for _, step := range t.steps(p) {
		k, err := launch.New(t.packer.device, t.spec(name, p, step))
		if err != nil {
			return nil, errors.Join(err, made.Close())
		}
		made.resources.Add(k)
		made.launches = append(made.launches, k)
	}
	return made, nil
}

// step is a launch: its kernel, and the host version of it.
type step struct {
	function streams.Function
	run      func()
}

// steps returns the launches of a passage.
func (t *BlockTable) steps(p passage) []step {
	switch {
	case t.options.Equal:
		return []step{{t.packer.equal, func() { t.copyEqual(p) }}}
	case t.sums != nil:
		return []step{{t.packer.scan, t.scanListed}, {t.packer.scanned, func() { t.copyScanned(p) }}}
	}
	return []step{{t.packer.listed[t.options.Sums], func() { t.copyListed(p) }}}
}

// spec returns the launch of a step.
func (t *BlockTable) spec(name string, p passage, s step) streams.KernelSpec {
	spec := streams.KernelSpec{
		Name: name, Function: s.function, Run: s.run,
		Grid: listGrid(t.packer.device, t.count, t.options.MaxBlocks), Block: [3]int{launch.BlockSize, 1, 1},
	}
	arg := blocksArgs{
		count: t.count, length: t.length, bytes: t.extent.size, chunk: t.chunk,
		sequential: t.options.sequential(), lanes: int64(t.options.Lanes),
	}
	for to, m := range map[*uint64]*streams.Memory{&arg.list: t.list, &arg.chunks: t.chunks, &arg.sums: t.sums} {
		if m != nil {
			spec.Uses = append(spec.Uses, m.All())
			*to = m.Address()
		}
	}
	arg.strided, arg.packed, arg.unpack = p.addresses()
	p.memory(&spec)
	spec.Argument = launch.Argument(&arg)
	return spec
}

// eachPart calls f with the part that each chunk has of each of its blocks, as the
// kernels for lists do: where its bytes begin in the block and in the chunk.
func (t *BlockTable) eachPart(f func(n int64, c chunk, block int64, skip, begin, bytes int64)) {
	list, chunks := launch.Values[Block](t.list.All()), launch.Values[chunk](t.chunks.All())
	for n := range t.count {
		c := chunks[n]
		begin, end, skip := int64(0), chunks[n+1].offset-c.offset, c.skip
		for i := c.first; begin < end; i++ {
			bytes := min(list[i].Length-skip, end-begin)
			f(n, c, i, skip, begin, bytes)
			begin, skip = begin+bytes, 0
		}
	}
}

// copyListed is the host version of kernel listed_blocks.
func (t *BlockTable) copyListed(p passage) {
	list, h := launch.Values[Block](t.list.All()), p.host()
	t.eachPart(func(_ int64, c chunk, block, skip, begin, bytes int64) {
		h.move(list[block].Displacement+skip, c.offset+begin, bytes)
	})
}

// scanListed and copyScanned are the host versions of kernels scan_blocks and
// scanned_blocks.
func (t *BlockTable) scanListed() {
	sums := launch.Values[uint32](t.sums.All())
	t.eachPart(func(n int64, _ chunk, block, _, begin, _ int64) { sums[block+n] = uint32(begin) })
}

func (t *BlockTable) copyScanned(p passage) {
	list, sums, h := launch.Values[Block](t.list.All()), launch.Values[uint32](t.sums.All()), p.host()
	t.eachPart(func(n int64, c chunk, block, skip, _, bytes int64) {
		h.move(list[block].Displacement+skip, c.offset+int64(sums[block+n]), bytes)
	})
}

// copyEqual is the host version of kernel equal_blocks.
func (t *BlockTable) copyEqual(p passage) {
	list, h := launch.Values[int64](t.list.All()), p.host()
	for n := range t.count {
		offset := n * t.chunk
		end := min(offset+t.chunk, t.extent.size)
		for offset < end {
			i := offset / t.length
			skip := offset - i*t.length
			bytes := min(t.length-skip, end-offset)
			h.move(list[i]+skip, offset, bytes)
			offset += bytes
		}
	}
}

// Close frees what it holds. Closing twice is no error.
func (c *BlockCopy) Close() error { return c.resources.Close() }
