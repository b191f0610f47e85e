package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/halox/halox/halo/datatype"
)

// features are numbers of a task that the time of an engine grows with. All are there for
// a reason: without blocks and calls the times of the driver's copies are wrong by orders
// of magnitude, without sectors those of short blocks far apart, without words those of
// numbers of 1 or 2 bytes.
type features [numFeatures]float64

const (
	perLaunch = iota // 1: what every job costs
	perByte          // packed, on the link where the packed bytes lie across one
	perBlock         // a contiguous piece: an address to work out, an entry of a list to read
	perSector        // of memory that is touched at the place, see sectors
	perWord          // a load and a store of the widest word that lengths and addresses allow
	perCall          // a copy of the driver's, or a piece to search for in a list of them, see calls
	numFeatures
)

// sectorBytes is what the memory of a GPU reads or writes at least.
const sectorBytes = 32

// features returns those of the task.
func (t *task) features() features {
	return taskFeatures(t.message.Layout, min(t.message.Layout.Alignment(), t.alignment()))
}

// taskFeatures returns the features of a layout that is not empty, in words of a width.
func taskFeatures(l *datatype.Layout, width int64) features {
	return features{1, float64(l.Size()), float64(l.NumBlocks()), sectors(l), float64(l.Size() / width),
		float64(calls(l))}
}

// sectors returns about how many sectors the blocks of a layout touch. Blocks that share
// one, as the columns of a transposed matrix do, touch it once: caches see to that.
func sectors(l *datatype.Layout) (n float64) {
	for i := range l.Pieces() {
		n += sectorsOfPiece(l.Pieces()[i], l.Alignment())
	}
	last := int64(math.MinInt64)
	for _, b := range l.List() {
		first := floorDiv(b.Displacement, sectorBytes)
		if first == last {
			first++
		}
		last = floorDiv(b.Displacement+b.Length-1, sectorBytes)
		n += float64(last - first + 1)
	}
	return n
}

// sectorsOfPiece takes blocks with less than a sector between them for one stretch. One of
// n bytes, which may start at any multiple of the alignment, touches 1 + (n-alignment)/32
// sectors on average.
func sectorsOfPiece(p datatype.Piece, alignment int64) float64 {
	dims := p.Dims[:p.Rank] // a copy: p is one
	slices.SortFunc(dims, func(a, b datatype.Dim) int { return cmp.Compare(abs(a.Stride), abs(b.Stride)) })
	stretch, stretches := p.Length, 1.0
	for _, d := range dims {
		if abs(d.Stride) < stretch+sectorBytes {
			stretch += (d.Count - 1) * abs(d.Stride)
		} else {
			stretches *= float64(d.Count)
		}
	}
	return stretches * (1 + float64(stretch-alignment)/sectorBytes)
}

func abs(n int64) int64 { return max(n, -n) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// maxPitch is what rows may be apart for the driver: less than 2^31 bytes.
const maxPitch = 1<<31 - 1

// isBox reports whether the driver copies the piece at once: rows that do not overlap,
// and planes that are whole numbers of rows apart, on both sides.
func isBox(p *datatype.Piece) bool {
	pitched := func(stride int64) bool { return stride >= p.Length && stride <= maxPitch }
	switch p.Rank {
	case 0:
		return true
	case 1:
		return pitched(p.Dims[0].Stride) && pitched(p.Dims[0].Packed)
	case 2:
		rows, planes := p.Dims[0], p.Dims[1]
		stacked := func(row, plane int64) bool { return plane >= row*rows.Count && plane%row == 0 }
		return pitched(rows.Stride) && pitched(rows.Packed) && stacked(rows.Stride, planes.Stride) &&
			stacked(rows.Packed, planes.Packed)
	}
	return false
}

// eachBox cuts a piece into pieces that the driver copies at once, along its outermost
// dimensions.
func eachBox(p datatype.Piece, f func(datatype.Piece) error) error {
	if isBox(&p) {
		return f(p)
	}
	p.Rank--
	outer := p.Dims[p.Rank]
	for range outer.Count {
		if err := eachBox(p, f); err != nil {
			return err
		}
		p.Displacement += outer.Stride
		p.Offset += outer.Packed
	}
	return nil
}

// calls returns how many copies of the driver's a layout takes.
func calls(l *datatype.Layout) int64 {
	n := int64(len(l.List()))
	for i := range l.Pieces() {
		p := l.Pieces()[i]
		each := int64(1)
		for !isBox(&p) {
			p.Rank--
			each *= p.Dims[p.Rank].Count
		}
		n += each
	}
	return n
}
