package pack

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// BlockPacker packs and unpacks lists of blocks on one device as the host bypass of
// HAND does (Shi et al., section IV): the device gets the list as it is, and the kernel
// itself finds out where each block lies in the packed buffer. It is HAND's kernel for
// indexed_block too (section III.C).
type BlockPacker struct {
	device *streams.Device
	// Functions are nil where Go runs. Those for lists are one for each way to keep
	// sums, and the two steps.
	listed        map[Sums]streams.Function
	scan, scanned streams.Function
	equal         streams.Function
}

// blocksArgs is struct Blocks of blocks.cu.
type blocksArgs struct {
	list, chunks      uint64
	strided, packed   uint64
	count, unpack     int64
	length            int64
	bytes, chunk      int64
	sequential, lanes int64
	sums              uint64
}

func blocksProgram() kernels.Program {
	return kernels.Program{File: "blocks.cu", Mirrors: []kernels.Mirror{
		{Name: "Blocks", Value: blocksArgs{}}, {Name: "Chunk", Value: chunk{}}, {Name: "Entry", Value: Block{}},
		{Name: "THREADS", Value: launch.BlockSize}, {Name: "MAX_BLOCKS", Value: maxChunkBlocks},
	}}
}

// NewBlockPacker compiles for the device.
func NewBlockPacker(c *kernels.Compiler, d *streams.Device) (*BlockPacker, error) {
	p := &BlockPacker{device: d}
	found, err := c.Load(d, blocksProgram(), "listed_blocks", "listed_blocks_2d", "scan_blocks", "scanned_blocks", "equal_blocks")
	if err != nil {
		return nil, err
	}
	p.listed = map[Sums]streams.Function{LineSums: found[0], PlaneSums: found[1]}
	p.scan, p.scanned, p.equal = found[2], found[3], found[4]
	return p, nil
}

// Scan is how the threads of a block sum up the lengths of blocks.
type Scan string

// The scans. AutoScan takes Sequential up to a threshold.
const (
	AutoScan   Scan = ""
	Sequential Scan = "sequential" // each thread for itself
	Parallel   Scan = "parallel"   // together, in a logarithmic number of steps
	TwoSteps   Scan = "two-steps"  // as Parallel, in a kernel of its own
)

// Sums is how the sums of a chunk lie in shared memory.
type Sums string

// The ways to keep sums.
const (
	LineSums  Sums = ""      // in one dimension
	PlaneSums Sums = "plane" // in two
)

// BlockOptions say how a BlockPacker works. The zero value suits most lists.
type BlockOptions struct {
	// The list lies in pinned host memory, which the device reads in each launch
	// (HAND's packiov), instead of memory of the device (copyiov).
	Pinned bool
	// All blocks have one length: the list holds displacements only, and no lengths
	// have to be summed up.
	Equal bool

	Scan      Scan
	Sums      Sums
	Threshold int // most blocks of a chunk that AutoScan sums up sequentially; 0: 16, as HAND

	Chunk     int // bytes that a thread block copies at a time, a multiple of 128; 0: automatic
	Lanes     int // threads along a block, a power of two up to 256; 0: adapted to each chunk
	MaxBlocks int // thread blocks of a launch; 0: as many as suit the device
}

// Limits of the kernels of blocks.cu.
const (
	chunkAlignment = 128
	maxChunk       = 1 << 30
	maxChunkBlocks = 1024
)

// check returns an error unless the options are possible.
func (o BlockOptions) check() error {
	switch {
	case o.Scan != AutoScan && o.Scan != Sequential && o.Scan != Parallel && o.Scan != TwoSteps:
		return fmt.Errorf("pack: no scan %q: sequential, parallel or two-steps", o.Scan)
	case o.Sums != LineSums && o.Sums != PlaneSums || o.Sums == PlaneSums && o.Scan == TwoSteps:
		return fmt.Errorf("pack: no sums %q with scan %q: plane, with scans of one step", o.Sums, o.Scan)
	case o.Threshold < 0:
		return fmt.Errorf("pack: a threshold of %d blocks", o.Threshold)
	case o.Chunk < 0 || o.Chunk > maxChunk || o.Chunk%chunkAlignment != 0:
		return fmt.Errorf("pack: chunks of %d bytes: multiples of %d up to %d are possible", o.Chunk, chunkAlignment, maxChunk)
	case o.Lanes < 0 || o.Lanes > launch.BlockSize || o.Lanes&(o.Lanes-1) != 0:
		return fmt.Errorf("pack: %d threads along a block: powers of two up to %d are possible", o.Lanes, launch.BlockSize)
	case o.MaxBlocks < 0:
		return fmt.Errorf("pack: %d thread blocks", o.MaxBlocks)
	}
	return nil
}

// sequential returns how many lengths at most are summed up sequentially.
func (o BlockOptions) sequential() int64 {
	switch {
	case o.Scan == Sequential:
		return maxChunkBlocks
	case o.Scan == Parallel:
		return 0
	case o.Threshold > 0:
		return int64(o.Threshold)
	}
	return 16
}

// chunkFor returns the bytes of a chunk for so many in all: few enough that all
// multiprocessors get some.
func (o BlockOptions) chunkFor(d *streams.Device, size int64) int64 {
	if o.Chunk > 0 {
		return int64(o.Chunk)
	}
	const least, most = 2 << 10, 16 << 10
	chunk := int64(least)
	for chunk < most && chunk*int64(d.Cores)*residentBlocks < size {
		chunk *= 2
	}
	return chunk
}

// chunk is struct Chunk of blocks.cu: where a stretch of the packed buffer begins
// there, and skip bytes into which block of the list.
type chunk struct{ offset, first, skip int64 }

// chunksOf cuts a list, all of whose blocks have bytes, into chunks of so many bytes at
// most, and maxChunkBlocks blocks. After the last comes one that begins at the end. A cut within a block lies
// at a multiple of chunkAlignment, if bytes is one.
func chunksOf(list []Block, bytes int64) []chunk {
	chunks := []chunk{{}}
	offset := int64(0)
	cut := func(first, skip int64) { chunks = append(chunks, chunk{offset, first, skip}) }
	for i, b := range list {
		if last := chunks[len(chunks)-1]; int64(i)-last.first == maxChunkBlocks {
			cut(int64(i), 0)
		}
		for done := int64(0); done < b.Length; {
			last := chunks[len(chunks)-1].offset
			room := last - last%chunkAlignment + bytes - offset
			n := min(room, b.Length-done)
			done, offset = done+n, offset+n
			switch {
			case n < room: // the block ends in the chunk
			case done < b.Length:
				cut(int64(i), done)
			default:
				cut(int64(i)+1, 0)
			}
		}
	}
	if last := chunks[len(chunks)-1]; last.offset < offset {
		cut(int64(len(list)), 0)
	}
	return chunks
}

// BlockTable is a list of blocks as a device reads it. It does not depend on where the
// memory lies that is packed and unpacked.
type BlockTable struct {
	resources    streams.Resources
	packer       *BlockPacker
	options      BlockOptions
	extent       extent
	length       int64 // of all blocks; 0 if the table says it
	chunk, count int64 // bytes of a chunk; chunks
	list, chunks *streams.Memory
	sums         *streams.Memory // of two steps, else nil
}

// Table makes a table of the blocks, which it does not keep.
func (p *BlockPacker) Table(list []Block, o BlockOptions) (t *BlockTable, err error) {
	t = &BlockTable{packer: p, options: o}
	if t.extent, err = extentOf(list); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	t.chunk = o.chunkFor(p.device, t.extent.size)
	list = withBytes(list)
	if o.Equal {
		err = t.fillEqual(list)
	} else {
		err = t.fill(list)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// withBytes returns the blocks that have any.
func withBytes(list []Block) []Block {
	some := make([]Block, 0, len(list))
	for _, b := range list {
		if b.Length > 0 {
			some = append(some, b)
		}
	}
	return some
}

// fill makes the table of a list of any blocks.
func (t *BlockTable) fill(list []Block) (err error) {
	chunks := chunksOf(list, t.chunk)
	t.count = int64(len(chunks)) - 1
	if t.list, err = listMemory(t, list); err != nil {
		return err
	}
	if t.chunks, err = listMemory(t, chunks); err != nil || t.options.Scan != TwoSteps {
		return err
	}
	if t.sums, err = t.packer.device.Alloc((int64(len(list)) + t.count + 1) * 4); err == nil {
		t.resources.Add(t.sums)
	}
	return err
}

// fillEqual makes the table of blocks of one length.
func (t *BlockTable) fillEqual(list []Block) (err error) {
	displacements := make([]int64, len(list))
	for i, b := range list {
		if b.Length != list[0].Length {
			return fmt.Errorf("pack: block %d has %d bytes, the first %d: they were to be equal", i, b.Length, list[0].Length)
		}
		displacements[i], t.length = b.Displacement, b.Length
	}
	t.count = (t.extent.size + t.chunk - 1) / t.chunk
	t.list, err = listMemory(t, displacements)
	return err
}

// listMemory puts values where the table's options say. There is memory for one at
// least.
func listMemory[T any](t *BlockTable, values []T) (m *streams.Memory, err error) {
	if len(values) == 0 {
		values = make([]T, 1)
	}
	if t.options.Pinned {
		if m, err = t.packer.device.AllocPinned(int64(len(values)) * int64(unsafe.Sizeof(values[0]))); err == nil {
			copy(streams.View[T](m.Bytes()), values)
		}
	} else {
		m, err = streams.Upload(t.packer.device, values)
	}
	if err == nil {
		t.resources.Add(m)
	}
	return m, err
}

// Close frees what it holds. Closing twice is no error.
func (t *BlockTable) Close() error { return t.resources.Close() }

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
