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

// fits returns an error unless what is packed fits into the buffer, and what lies about the origin into strided memory.
func (e extent) fits(p Passage) error {
	if p.Packed.Memory == nil || p.Strided.Memory == nil {
		return fmt.Errorf("pack: %s: a memory is nil", p.name())
	}
	if e.size == 0 {
		return nil
	}
	if p.Packed.Length < e.size {
		return fmt.Errorf("pack: %d packed bytes do not fit into %v", e.size, p.Packed)
	}
	low, high := p.Origin+e.low, p.Origin+e.high
	if (low < p.Origin) != (e.low < 0) || (high < p.Origin) != (e.high < 0) {
		return fmt.Errorf("%w: displacements %d to %d about %d", errOverflow, e.low, e.high, p.Origin)
	}
	if low < 0 || high > p.Strided.Length {
		return fmt.Errorf("pack: bytes from %d to %d about %d reach out of %v", e.low, e.high, p.Origin, p.Strided)
	}
	return nil
}

// Passage binds a list of blocks or a tree to memory: it is packed from strided memory, in which displacement 0 lies
// Origin bytes after the start, into the first bytes of the packed buffer, or unpacked the other way. What is read lies
// on the packer's device or in pinned memory; what is written too, or in memory of a peer that the device can reach.
// The two do not overlap. Unpacking touches no byte between the blocks; where blocks overlap, any of their values
// remains.
type Passage struct {
	Packed, Strided streams.Span
	Origin          int64
	Unpack          bool
}

// name is for errors and traces.
func (p Passage) name() string {
	if p.Unpack {
		return "unpack"
	}
	return "pack"
}

// addresses returns what a kernel needs of it: where displacement 0 and the buffer lie,
// and 1 to unpack.
func (p Passage) addresses() (strided, packed uint64, unpack int64) {
	if p.Unpack {
		unpack = 1
	}
	return p.Strided.Address() + uint64(p.Origin), p.Packed.Address(), unpack
}

// hostPassage is a passage as the CPU sees it.
type hostPassage struct {
	packed, strided []byte
	origin          int64
	unpack          bool
}

func (p Passage) host() hostPassage {
	return hostPassage{launch.Values[byte](p.Packed), launch.Values[byte](p.Strided), p.Origin, p.Unpack}
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
