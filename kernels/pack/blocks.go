package pack

import (
	"fmt"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// BlockPacker packs and unpacks lists of blocks on one device by the host bypass of HAND (Shi et al. 2014, section
// IV): the device gets the list unchanged, and the kernel computes the location of each block in the packed
// buffer. It is also HAND's kernel for indexed_block (section III.C).
type BlockPacker struct {
	device *streams.Device
	listed streams.Function // nil on CPU devices, like the next
	equal  streams.Function
}

// blocksArgs is struct Blocks of blocks.cu.
type blocksArgs struct {
	list, chunks      uint64
	strided, packed   uint64
	count, unpack     int64
	length            int64
	bytes, chunk      int64
	sequential, lanes int64
}

func blocksProgram() kernels.Program {
	return kernels.Program{File: "blocks.cu", Mirrors: []kernels.Mirror{
		{Name: "Blocks", Value: blocksArgs{}}, {Name: "Chunk", Value: chunk{}}, {Name: "Entry", Value: Block{}},
		{Name: "THREADS", Value: launch.BlockSize}, {Name: "MAX_BLOCKS", Value: maxChunkBlocks},
	}}
}

// NewBlockPacker compiles the kernels for the device.
func NewBlockPacker(c *kernels.Compiler, d *streams.Device) (*BlockPacker, error) {
	p := &BlockPacker{device: d}
	found, err := c.Load(d, blocksProgram(), "listed_blocks", "equal_blocks")
	if err != nil {
		return nil, err
	}
	p.listed, p.equal = found[0], found[1]
	return p, nil
}

// Scan is how the threads of a block sum the lengths of blocks.
type Scan string

// The scans. AutoScan selects Sequential for chunks of up to 16 blocks, as HAND does. A scan in a separate kernel
// took 1.6 to 1.7 times as long on an H200, and sums in two dimensions of shared memory were not faster than in
// one, so neither exists.
const (
	AutoScan   Scan = ""
	Sequential Scan = "sequential" // by each thread
	Parallel   Scan = "parallel"   // jointly, in a logarithmic number of steps
)

// BlockOptions configures a BlockPacker. The zero value suits most lists.
type BlockOptions struct {
	// Pinned keeps the list in pinned host memory, which the device reads in each launch (HAND's packiov), instead of
	// device memory (copyiov). Default false.
	Pinned bool
	// Upload keeps a copy of the list in pinned host memory too, from which BlockTable.Upload copies it. Default false.
	Upload bool
	// Equal means that all blocks have one length: the list holds only displacements, and no lengths need to be
	// summed. Default false.
	Equal bool

	Scan      Scan // default AutoScan
	Chunk     int  // bytes that a thread block copies at a time, a multiple of 128; default: automatic
	Lanes     int  // threads along a block, a power of two up to 256; default: adapted to each chunk
	MaxBlocks int  // thread blocks of a launch; default: suited to the device
}

// Limits of the kernels of blocks.cu.
const (
	chunkAlignment = 128
	maxChunk       = 1 << 30
	maxChunkBlocks = 1024
)

// check returns an error unless the options are valid.
func (b BlockOptions) check() error {
	switch {
	case b.Scan != AutoScan && b.Scan != Sequential && b.Scan != Parallel:
		return fmt.Errorf("pack: scan: must be sequential or parallel, got %q", b.Scan)
	case b.Chunk < 0 || b.Chunk > maxChunk || b.Chunk%chunkAlignment != 0:
		return fmt.Errorf("pack: chunk of %d bytes: must be a multiple of %d, at most %d", b.Chunk, chunkAlignment,
			maxChunk)
	case b.Lanes < 0 || b.Lanes > launch.BlockSize || b.Lanes&(b.Lanes-1) != 0:
		return fmt.Errorf("pack: %d lanes: must be a power of two, at most %d", b.Lanes,
			launch.BlockSize)
	case b.MaxBlocks < 0:
		return fmt.Errorf("pack: number of thread blocks: must be at least 0, got %d", b.MaxBlocks)
	}
	return nil
}

// sequential returns the largest number of lengths that are summed sequentially.
func (b BlockOptions) sequential() int64 {
	switch b.Scan {
	case Sequential:
		return maxChunkBlocks
	case Parallel:
		return 0
	}
	return 16
}

// chunkFor returns the chunk size for the given number of bytes in total: small enough that all multiprocessors
// get chunks.
func (b BlockOptions) chunkFor(d *streams.Device, size int64) int64 {
	if b.Chunk > 0 {
		return int64(b.Chunk)
	}
	const least, most = 2 << 10, 16 << 10
	chunk := int64(least)
	for chunk < most && chunk*int64(d.Cores)*residentBlocks < size {
		chunk *= 2
	}
	return chunk
}

// chunk is struct Chunk of blocks.cu: a range of the packed buffer that begins at offset, skip bytes into block
// first of the list.
type chunk struct{ offset, first, skip int64 }

// chunksOf divides a list of non-empty blocks into chunks of at most the given bytes and maxChunkBlocks blocks,
// followed by one that begins at the end. A boundary within a block is at a multiple of chunkAlignment, if bytes
// is one.
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

// BlockTable is a list of blocks in the form read by the device. It does not depend on the memory that is packed
// and unpacked.
type BlockTable struct {
	resources    streams.Resources
	packer       *BlockPacker
	options      BlockOptions
	extent       extent
	length       int64 // of all blocks; 0 if the table contains lengths
	chunk, count int64 // bytes per chunk; number of chunks
	list, chunks *streams.Memory
	uploads      [][2]*streams.Memory // memory of the device and its copy in pinned memory
}

// Table builds a table of the blocks; it does not keep the list.
func (b *BlockPacker) Table(list []Block, o BlockOptions) (t *BlockTable, err error) {
	t = &BlockTable{packer: b, options: o}
	if t.extent, err = extentOf(list); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	t.chunk = o.chunkFor(b.device, t.extent.size)
	list = withBytes(list)
	if o.Equal {
		return t, t.fillEqual(list)
	}
	chunks := chunksOf(list, t.chunk)
	t.count, t.list, t.chunks = int64(len(chunks))-1, listMemory(t, list), listMemory(t, chunks)
	return t, t.resources.Done()
}

// withBytes returns the non-empty blocks.
func withBytes(list []Block) []Block {
	some := make([]Block, 0, len(list))
	for _, b := range list {
		if b.Length > 0 {
			some = append(some, b)
		}
	}
	return some
}

// fillEqual builds the table of blocks of one length.
func (t *BlockTable) fillEqual(list []Block) error {
	displacements := make([]int64, len(list))
	for i, b := range list {
		if b.Length != list[0].Length {
			return fmt.Errorf("pack: block %d: with option Equal, must have %d bytes as the first, got %d", i,
				list[0].Length, b.Length)
		}
		displacements[i], t.length = b.Displacement, b.Length
	}
	t.count = (t.extent.size + t.chunk - 1) / t.chunk
	t.list = listMemory(t, displacements)
	return t.resources.Done()
}

// listMemory stores values in the memory selected by the table's options. The memory holds at least one value.
func listMemory[T any](t *BlockTable, values []T) (m *streams.Memory) {
	if len(values) == 0 {
		values = make([]T, 1)
	}
	if !t.options.Pinned {
		streams.Into(&t.resources, &m)(streams.Upload(t.packer.device, values))
		if !t.options.Upload {
			return m
		}
	}
	pinned := t.resources.AllocPinned(t.packer.device, int64(len(values))*int64(unsafe.Sizeof(values[0])))
	if pinned != nil {
		copy(streams.View[T](pinned.Bytes()), values)
	}
	if t.options.Pinned {
		return pinned
	}
	t.uploads = append(t.uploads, [2]*streams.Memory{m, pinned})
	return m
}

// Upload queues the copies of the list to the device (HAND's copyiov); none without option Upload.
func (t *BlockTable) Upload(s *streams.Stream) error {
	for _, u := range t.uploads {
		if err := s.Copy(u[0].All(), u[1].All()); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the memory. Closing twice is allowed.
func (t *BlockTable) Close() error { return t.resources.Close() }

// Kernel prepares a copy of the blocks. The caller closes the kernel. It may be launched repeatedly while the
// table is open.
func (t *BlockTable) Kernel(p Passage) (*streams.Kernel, error) {
	if err := t.extent.fits(p); err != nil {
		return nil, err
	}
	spec := streams.KernelSpec{
		Name: p.name() + " a list of blocks", Function: t.packer.listed, Run: func() { t.copyOnHost(p) },
		Reaches: []streams.Span{p.Packed, p.Strided},
		Grid:    listGrid(t.packer.device, t.count, t.options.MaxBlocks), Block: [3]int{launch.BlockSize, 1, 1},
	}
	if t.options.Equal {
		spec.Function = t.packer.equal
	}
	arg := blocksArgs{
		list: t.list.Address(), count: t.count, length: t.length, bytes: t.extent.size, chunk: t.chunk,
		sequential: t.options.sequential(), lanes: int64(t.options.Lanes),
	}
	spec.Uses = append(spec.Uses, t.list.All())
	if t.chunks != nil {
		arg.chunks = t.chunks.Address()
		spec.Uses = append(spec.Uses, t.chunks.All())
	}
	arg.strided, arg.packed, arg.unpack = p.addresses()
	spec.Argument = launch.Argument(&arg)
	return launch.New(t.packer.device, spec)
}

// copyOnHost is the Go counterpart of both kernels, block by block.
func (t *BlockTable) copyOnHost(p Passage) {
	if t.extent.size == 0 {
		return
	}
	h, offset := p.host(), int64(0)
	if t.options.Equal {
		for _, displacement := range launch.Values[int64](t.list.All()) {
			h.move(displacement, offset, t.length)
			offset += t.length
		}
		return
	}
	for _, b := range launch.Values[Block](t.list.All()) {
		h.move(b.Displacement, offset, b.Length)
		offset += b.Length
	}
}
