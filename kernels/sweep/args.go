package sweep

import (
	"encoding/binary"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
)

// words is the argument of a kernel, number by number: all of them have 8 bytes, so that Go and C
// lay them out alike.
type words []byte

func (w *words) put(numbers ...int64) {
	for _, n := range numbers {
		*w = binary.NativeEndian.AppendUint64(*w, uint64(n))
	}
}

// putNarrow puts numbers of 4 bytes.
func (w *words) putNarrow(numbers ...int) {
	for _, n := range numbers {
		*w = binary.NativeEndian.AppendUint32(*w, uint32(int32(n)))
	}
}

func (w *words) putFloats(numbers ...float64) {
	for _, n := range numbers {
		*w = binary.NativeEndian.AppendUint64(*w, math.Float64bits(n))
	}
}

// frameBytes is the size of struct Frame.
func (n *plan) frameBytes() int { return frameNumbers*8 + len(parameterBytes(n.point.Parameters)) }

// frame is struct Frame, of step 0.
func (n *plan) frame() []byte {
	var w words
	w.put(0, 0, 0)
	c := n.point.Coordinates
	w.putFloats(c.Shift[:]...)
	w.putFloats(c.Spacing[:]...)
	return append(w, parameterBytes(n.point.Parameters)...)
}

// partNumbers are those of struct Part of stream.cuh before the places.
const partNumbers = 3 + 3 + 3

// sweepBytes is the size of struct Sweep of point.cu.
func (n *plan) sweepBytes(classes int) int {
	return 8*(n.arrays+2*classes+2+maxBoxes*(partNumbers+classes)) + n.frameBytes()
}

// origin is the address that the point of index 0, 0, 0 has in an array, or would have.
func origin(a kernels.Array) int64 {
	return int64(a.Data.Address()) + a.Layout.Offset(domain.Vec{})*int64(a.Layout.ElementSize)
}

// argument returns struct Sweep, and where its frame begins.
func (k *launchPlan) argument(n *plan) (bytes []byte, frame int) {
	var w words
	w.putArrays(k.arrays, k.strides)
	w.put(int64(k.totals), int64(k.layers))
	for i := range maxBoxes {
		w.putPart(k.parts[i], k.strides)
	}
	return append(w, n.frame()...), len(w)
}

// putPart puts struct Part of stream.cuh.
func (w *words) putPart(p part, all []strides) {
	w.put(int64(p.lo[0]), int64(p.lo[1]), int64(p.lo[2]), int64(p.n[0]), int64(p.n[1]), int64(p.n[2]), p.head, p.groups, p.slot)
	for _, s := range all {
		w.put(int64(p.lo[0]) + int64(p.lo[1])*s.pitch + int64(p.lo[2])*s.plane)
	}
}

// putArrays puts struct Arrays of site.cuh.
func (w *words) putArrays(all []kernels.Array, classes []strides) {
	for _, a := range all {
		w.put(origin(a))
	}
	for _, s := range classes {
		w.put(s.pitch, s.plane)
	}
}
