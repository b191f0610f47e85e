package sweep

import (
	"unsafe"

	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// slot is what a block, or a launch on a host device, finds of norms and reductions: rows.Norms of each norm,
// then of each reduction a sums.Sum or a float64.
type slot []byte

// normBytes is the size of rows.Norms.
const normBytes = int(unsafe.Sizeof(rows.Norms{}))

// bytes is the size of what a reduction has in a slot.
func (o Operation) bytes() int {
	if o == Sum {
		return sums.Bytes
	}
	return 8
}

// slotPart is a part of a slot that is joined by itself.
type slotPart struct {
	op    Operation
	place int
}

// slotParts returns all parts of a slot with so many norms.
func slotParts(count int, reductions []Reduction) (all []slotPart) {
	var norms rows.Norms
	at := 0
	for range count {
		all = append(all, slotPart{Max, at + int(unsafe.Offsetof(norms.MaxChange))}, slotPart{Sum, at + int(unsafe.Offsetof(norms.SumChange2))},
			slotPart{Max, at + int(unsafe.Offsetof(norms.Max))}, slotPart{Sum, at + int(unsafe.Offsetof(norms.Sum2))})
		at += normBytes
	}
	for _, r := range reductions {
		all = append(all, slotPart{r.Op, at})
		at += r.Op.bytes()
	}
	return all
}

// in returns something that lies in a slot.
func in[T any](s slot, place int) *T {
	var zero T
	return &streams.View[T](s[place : place+int(unsafe.Sizeof(zero))])[0]
}
