package pack

import (
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// Block is Length bytes that lie Displacement bytes from an origin in strided memory.
// In a list of blocks, each begins in the packed buffer where its predecessor ends.
// Blocks without bytes are no error.
type Block struct{ Displacement, Length int64 }

// maxPacked is the most bytes that a list of blocks may have, one less than that.
const maxPacked = 1 << 44

var errOverflow = errors.New("pack: a block reaches beyond 64 bits")

// extent is what a list of blocks covers: its bytes, and the half-open range of the
// displacements that they have.
type extent struct{ size, low, high int64 }

// extentOf returns the extent of a list, or an error if a block is not valid.
func extentOf(list []Block) (r extent, err error) {
	r.low, r.high = math.MaxInt64, math.MinInt64
	for i, b := range list {
		end := b.Displacement + b.Length
		switch {
		case b.Length < 0:
			return r, fmt.Errorf("pack: block %d has %d bytes", i, b.Length)
		case b.Length == 0:
			continue
		case end < b.Displacement:
			return r, fmt.Errorf("%w: block %d, %+v", errOverflow, i, b)
		case b.Length >= maxPacked-r.size:
			return r, fmt.Errorf("pack: with block %d the list has more than %d bytes", i, int64(maxPacked))
		}
		r.size += b.Length
		r.low, r.high = min(r.low, b.Displacement), max(r.high, end)
	}
	return r, nil
}

// fits returns an error unless the packed bytes fit into the buffer and the blocks
// about the origin into strided memory.
func (e extent) fits(packed, strided streams.Span, origin int64) error {
	if packed.Memory == nil || strided.Memory == nil {
		return errors.New("pack: a list of blocks is copied between two memories")
	}
	if e.size == 0 {
		return nil
	}
	if packed.Length < e.size {
		return fmt.Errorf("pack: %d packed bytes do not fit into %v", e.size, packed)
	}
	low, high := origin+e.low, origin+e.high
	if (low < origin) != (e.low < 0) || (high < origin) != (e.high < 0) {
		return fmt.Errorf("%w: displacements %d to %d about %d", errOverflow, e.low, e.high, origin)
	}
	if low < 0 || high > strided.Length {
		return fmt.Errorf("pack: blocks from %d to %d about %d reach out of %v", e.low, e.high, origin, strided)
	}
	return nil
}

// passage is a packed buffer and strided memory that a list of blocks is copied
// between.
type passage struct {
	packed, strided streams.Span
	origin          int64 // in strided
	unpack          bool
}

// addresses returns what a kernel needs of it: where displacement 0 and the buffer lie,
// and 1 to unpack.
func (p passage) addresses() (strided, packed uint64, unpack int64) {
	if p.unpack {
		unpack = 1
	}
	return p.strided.Address() + uint64(p.origin), p.packed.Address(), unpack
}

// memory enters what is read and written into the spec of a launch. Either side may lie in
// the memory of a peer.
func (p passage) memory(spec *streams.KernelSpec) {
	spec.Reaches = append(spec.Reaches, p.packed, p.strided)
}

// hostPassage is a passage as the CPU sees it.
type hostPassage struct {
	packed, strided []byte
	origin          int64
	unpack          bool
}

func (p passage) host() hostPassage {
	return hostPassage{launch.Values[byte](p.packed), launch.Values[byte](p.strided), p.origin, p.unpack}
}

// move copies bytes of a block, which lie so far from the origin and begin so far in
// the buffer. A copy cannot be interrupted, so that it takes some at a time.
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

// copyBytes copies between slices of one length. The usual sizes of a number cost no
// call.
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

// residentBlocks is how many thread blocks of the kernels for lists a multiprocessor
// holds at once; their launch bounds say so.
const residentBlocks = 5

// listGrid returns how many thread blocks to start for work that could keep so many
// busy: at most a given number, or where that is 0 some times what the device holds,
// so that it can balance them.
func listGrid(d *streams.Device, work int64, most int) [3]int {
	const waves = 4
	if most == 0 {
		most = d.Cores * residentBlocks * waves
	}
	return [3]int{int(max(1, min(work, int64(most)))), 1, 1}
}
