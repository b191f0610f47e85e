package pack

import (
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// Block is a range of bytes in strided memory. In a list of blocks, each begins in the packed buffer where its
// predecessor ends. Empty blocks are allowed.
type Block struct {
	Displacement int64 // from the origin, in bytes
	Length       int64 // bytes, at least 0
}

// maxPacked is 1 plus the largest number of bytes of a list of blocks.
const maxPacked = 1 << 44

var errOverflow = errors.New("pack: block: must be within 64 bits")

// extent is the size of a list of blocks, and the half-open range of its displacements, in bytes.
type extent struct{ size, low, high int64 }

// extentOf returns the extent of a list, or an error if a block is invalid.
func extentOf(list []Block) (r extent, err error) {
	r.low, r.high = math.MaxInt64, math.MinInt64
	for i, b := range list {
		end := b.Displacement + b.Length
		switch {
		case b.Length < 0:
			return r, fmt.Errorf("pack: block %d: length must be at least 0, got %d", i, b.Length)
		case b.Length == 0:
			continue
		case end < b.Displacement:
			return r, fmt.Errorf("%w: block %d, %+v", errOverflow, i, b)
		case b.Length >= maxPacked-r.size:
			return r, fmt.Errorf("pack: block %d: the list must have less than %d bytes in total", i, int64(maxPacked))
		}
		r.size += b.Length
		r.low, r.high = min(r.low, b.Displacement), max(r.high, end)
	}
	return r, nil
}

// fits returns an error unless the packed bytes fit in the buffer, and the displacements in strided memory.
func (e extent) fits(p Passage) error {
	if p.Packed.Memory == nil || p.Strided.Memory == nil {
		return fmt.Errorf("pack: %s: memory must not be nil", p.name())
	}
	if e.size == 0 {
		return nil
	}
	if p.Packed.Length < e.size {
		return fmt.Errorf("pack: buffer for %d packed bytes: must be large enough, got %v", e.size, p.Packed)
	}
	low, high := p.Origin+e.low, p.Origin+e.high
	if (low < p.Origin) != (e.low < 0) || (high < p.Origin) != (e.high < 0) {
		return fmt.Errorf("%w: displacements %d to %d from origin %d", errOverflow, e.low, e.high, p.Origin)
	}
	if low < 0 || high > p.Strided.Length {
		return fmt.Errorf("pack: displacements %d to %d from origin %d: must be within %v", e.low, e.high, p.Origin,
			p.Strided)
	}
	return nil
}

// Passage binds a list of blocks or a tree to memory. Data is packed from strided memory into the first bytes of
// the packed buffer, or unpacked in the other direction. The source is on the packer's device or in pinned memory;
// the destination may also be in memory of a peer that the device can reach. They must not overlap. Unpacking does
// not change bytes between the blocks. If blocks overlap, any of their values remains.
type Passage struct {
	Packed, Strided streams.Span // the packed buffer, and the strided memory
	Origin          int64        // location of displacement 0 from the start of Strided, in bytes
	Unpack          bool         // direction; default false: pack
}

// name is for errors and traces.
func (p Passage) name() string {
	if p.Unpack {
		return "unpack"
	}
	return "pack"
}

// addresses returns the values for a kernel: the locations of displacement 0 and of the buffer, and 1 to unpack.
func (p Passage) addresses() (strided, packed uint64, unpack int64) {
	if p.Unpack {
		unpack = 1
	}
	return p.Strided.Address() + uint64(p.Origin), p.Packed.Address(), unpack
}

// hostPassage is a passage as seen by the CPU.
type hostPassage struct {
	packed, strided []byte
	origin          int64
	unpack          bool
}

func (p Passage) host() hostPassage {
	return hostPassage{launch.Values[byte](p.Packed), launch.Values[byte](p.Strided), p.Origin, p.Unpack}
}

// move copies bytes of a block at the given displacement and offset in the buffer. It copies limited amounts,
// since a copy cannot be preempted.
func (h *hostPassage) move(displacement, offset, bytes int64) {
	const most = 1 << 20
	for ; bytes > most; bytes -= most {
		h.moveSome(displacement, offset, most)
		displacement, offset = displacement+most, offset+most
	}
	h.moveSome(displacement, offset, bytes)
}

func (h *hostPassage) moveSome(displacement, offset, bytes int64) {
	there, packed := h.strided[h.origin+displacement:][:bytes], h.packed[offset:][:bytes]
	if h.unpack {
		copyBytes(there, packed)
	} else {
		copyBytes(packed, there)
	}
}

// copyBytes copies between slices of equal length, with fast paths for common element sizes.
func copyBytes(dst, src []byte) {
	switch len(dst) {
	case 4:
		*(*[4]byte)(dst) = *(*[4]byte)(src)
	case 8:
		*(*[8]byte)(dst) = *(*[8]byte)(src)
	case 16:
		*(*[16]byte)(dst) = *(*[16]byte)(src)
	default:
		copy(dst, src)
	}
}

// residentBlocks is the number of resident thread blocks per multiprocessor of the kernels for lists, set by their
// launch bounds.
const residentBlocks = 5

// listGrid returns the grid for work that can use the given number of blocks: at most the given limit or, if that
// is 0, several times the resident blocks of the device, for load balance.
func listGrid(d *streams.Device, work int64, most int) [3]int {
	const waves = 4
	if most == 0 {
		most = d.Cores * residentBlocks * waves
	}
	return [3]int{int(max(1, min(work, int64(most)))), 1, 1}
}
