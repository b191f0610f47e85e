package datatype

// MaxDims is the greatest number of repetitions of a [Piece].
const MaxDims = 4

// A Block is Length bytes that lie Displacement bytes from the origin.
type Block struct {
	Displacement int64
	Length       int64
}

// A Dim repeats what is inside it Count times: Stride bytes apart in memory, Packed bytes apart in the packed buffer.
// Count is at least 2. Stride may be negative or, where blocks overlap, 0. Packed is positive.
type Dim struct {
	Count  int64
	Stride int64
	Packed int64
}

// A Piece is a contiguous block of Length bytes, repeated over Rank dimensions. Block (i0, i1, ...) lies at
//
//	memory: Displacement + i0*Dims[0].Stride + i1*Dims[1].Stride + ...   bytes from the origin
//	packed: Offset       + i0*Dims[0].Packed + i1*Dims[1].Packed + ...   bytes from the start
//
// Dimensions are ordered innermost first, in pack order: Dims[0].Packed >= Length, and Dims[d+1].Packed is at least
// Dims[d].Count * Dims[d].Packed. They are equal where the piece has its stretch of the packed buffer for itself, greater
// where it shares it with other pieces, as the members of an array of structs do.
type Piece struct {
	Displacement int64 // of the first block, from the origin
	Offset       int64 // of the first block in the packed buffer
	Length       int64 // of each block; at least 1
	Rank         int   // dimensions in use, 0 to MaxDims
	Dims         [MaxDims]Dim
}

// Blocks returns the number of blocks of the piece.
func (p *Piece) Blocks() int64 {
	n := int64(1)
	for _, d := range p.Dims[:p.Rank] {
		n *= d.Count
	}
	return n
}

// Size returns the number of bytes of the piece.
func (p *Piece) Size() int64 { return p.Length * p.Blocks() }

// Bounds returns the half-open range of displacements that the piece touches.
func (p *Piece) Bounds() (lo, hi int64) {
	lo, hi = p.Displacement, p.Displacement+p.Length
	for _, d := range p.Dims[:p.Rank] {
		reach := (d.Count - 1) * d.Stride
		lo, hi = lo+min(0, reach), hi+max(0, reach)
	}
	return lo, hi
}
