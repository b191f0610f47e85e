package datatype

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// MaxPieces is the maximum number of pieces of a strided layout, unless it has more than [MaxBlocks] blocks.
const MaxPieces = 64

// MaxBlocks is the maximum number of blocks that Commit lists. It rejects irregular types with more blocks.
const MaxBlocks = 1 << 24

// A Layout is the location of the bytes of count elements of a type, in canonical form. [Commit] makes it; it
// never changes. It has one of two forms:
// - strided: Pieces, in the order of their offsets, which together cover the packed buffer exactly once. A contiguous
// layout is one piece of rank 0. An empty layout has no pieces.
// - listed: List, the blocks in pack order, no two of them adjacent. Each begins in the packed buffer where its
// predecessor ends.
//
// Both forms are read-only.
type Layout struct {
	pieces []Piece // nil if listed
	list   []Block // nil if strided
	totals
	key func() Key
}

// totals are properties of a layout.
type totals struct {
	size, trueLB, trueUB       int64
	blocks, minBlock, maxBlock int64
	alignment                  int64
}

// Strided reports whether the layout is a set of pieces; otherwise it is a list of blocks.
func (l *Layout) Strided() bool { return l.list == nil }

// Pieces returns the pieces of a strided layout, in the order of their offsets. The slice must not be changed.
func (l *Layout) Pieces() []Piece { return l.pieces }

// List returns the blocks of a listed layout, in pack order. The slice must not be changed.
func (l *Layout) List() []Block { return l.list }

// Contiguous reports whether the layout is at most one block.
func (l *Layout) Contiguous() bool { return l.blocks <= 1 }

// Size returns the number of bytes when packed.
func (l *Layout) Size() int64 { return l.size }

// TrueLB returns the smallest displacement of the layout's bytes; 0 if it is empty.
func (l *Layout) TrueLB() int64 { return l.trueLB }

// TrueUB returns the displacement after the greatest one of the layout's bytes; 0 if it is empty.
func (l *Layout) TrueUB() int64 { return l.trueUB }

// NumBlocks returns the number of blocks.
func (l *Layout) NumBlocks() int64 { return l.blocks }

// MinBlock returns the length in bytes of the shortest block; 0 if the layout is empty.
func (l *Layout) MinBlock() int64 { return l.minBlock }

// MaxBlock returns the length in bytes of the longest block; 0 if the layout is empty.
func (l *Layout) MaxBlock() int64 { return l.maxBlock }

// Alignment returns the greatest power of two, at most 16, that divides all displacements, lengths, strides and packed
// offsets. Words of that many bytes may be copied if the origin and the packed buffer are aligned to them.
func (l *Layout) Alignment() int64 { return l.alignment }

// Blocks yields all blocks in pack order, each with its offset in the packed buffer. Pieces are not expanded
// in memory.
func (l *Layout) Blocks() iter.Seq2[int64, Block] {
	if !l.Strided() {
		return listed(l.list)
	}
	return inPackOrder(l.pieces)
}

// Key identifies a layout in a cache. Equal layouts have equal keys, in every process; different layouts have
// different keys, except for collisions of SHA-256.
type Key [sha256.Size]byte

// Equal reports whether two layouts have the same canonical form: then they name the same bytes in the same
// order. The converse holds for all regular layouts that [Commit] recognizes.
func (l *Layout) Equal(other *Layout) bool {
	return slices.Equal(l.pieces, other.pieces) && slices.Equal(l.list, other.list)
}

// Key returns the layout's key, which is computed once.
func (l *Layout) Key() Key { return l.key() }

// hash computes the key.
func (l *Layout) hash() Key {
	w := keyWriter{Hash: sha256.New()}
	for _, p := range l.pieces {
		w.put(p.Displacement, p.Offset, p.Length, int64(p.Rank))
		for _, d := range p.Dims[:p.Rank] {
			w.put(d.Count, d.Stride, d.Packed)
		}
	}
	w.put(-1) // not a valid displacement, offset or length
	for _, b := range l.list {
		w.put(b.Displacement, b.Length)
	}
	w.Write(w.buffer)
	return Key(w.Sum(nil))
}

// A keyWriter hashes numbers.
type keyWriter struct {
	hash.Hash
	buffer []byte
}

func (k *keyWriter) put(numbers ...int64) {
	for _, n := range numbers {
		k.buffer = binary.LittleEndian.AppendUint64(k.buffer, uint64(n))
	}
	if len(k.buffer) >= 1<<12 {
		k.Write(k.buffer)
		k.buffer = k.buffer[:0]
	}
}

// Pack copies the bytes of the layout from src to the start of dst. Displacement 0 is at src[origin]. It
// allocates nothing. If dst is too short, or the layout is not inside src, it returns an error and copies
// nothing.
func (l *Layout) Pack(dst, src []byte, origin int64) error {
	if err := fits(len(dst), len(src), origin, l.size, l.trueLB, l.trueUB); err != nil {
		return fmt.Errorf("datatype: pack: %w", err)
	}
	l.rows(func(r row) {
		copyRow(dst, r.offset, r.Packed, src, origin+r.displacement, r.Stride, r.Count, r.length)
	})
	return nil
}

// Unpack copies packed bytes from the start of src to their places in dst, and changes no other bytes. If the
// layout overlaps itself, any of the values may remain.
func (l *Layout) Unpack(dst []byte, origin int64, src []byte) error {
	if err := fits(len(src), len(dst), origin, l.size, l.trueLB, l.trueUB); err != nil {
		return fmt.Errorf("datatype: unpack: %w", err)
	}
	l.rows(func(r row) {
		copyRow(dst, origin+r.displacement, r.Stride, src, r.offset, r.Packed, r.Count, r.length)
	})
	return nil
}

// A row is blocks of one length, repeated over one dimension.
type row struct {
	displacement, offset, length int64
	Dim
}

// rows calls f for all rows of the layout.
func (l *Layout) rows(f func(row)) {
	for i := range l.pieces {
		l.pieces[i].rows(f)
	}
	offset := int64(0)
	for _, b := range l.list {
		f(row{b.Displacement, offset, b.Length, Dim{Count: 1}})
		offset += b.Length
	}
}

// rows calls f for all rows of the piece: its blocks over the innermost dimension.
func (p *Piece) rows(f func(row)) {
	if p.Rank == 0 {
		f(row{p.Displacement, p.Offset, p.Length, Dim{Count: 1}})
		return
	}
	outer := *p
	outer.Rank--
	copy(outer.Dims[:], p.Dims[1:])
	c := cursor{piece: &outer, displacement: p.Displacement, offset: p.Offset}
	for more := true; more; more = c.next() {
		f(row{c.displacement, c.offset, p.Length, p.Dims[0]})
	}
}

// copyRow copies count blocks of length bytes, whose starts are steps apart on both sides.
func copyRow(dst []byte, to, toStep int64, src []byte, from, fromStep, count, length int64) {
	switch length {
	case 4:
		for range count {
			*(*[4]byte)(dst[to:]) = *(*[4]byte)(src[from:])
			to, from = to+toStep, from+fromStep
		}
	case 8:
		for range count {
			*(*[8]byte)(dst[to:]) = *(*[8]byte)(src[from:])
			to, from = to+toStep, from+fromStep
		}
	case 16:
		for range count {
			*(*[16]byte)(dst[to:]) = *(*[16]byte)(src[from:])
			to, from = to+toStep, from+fromStep
		}
	default:
		for range count {
			copy(dst[to:to+length], src[from:])
			to, from = to+toStep, from+fromStep
		}
	}
}

// Slice returns the layout of packed bytes lo to hi, hi excluded: the corresponding part of the layout, at
// the same displacements, packed from 0. Messages are sent in such fragments. A slice of pieces is pieces,
// and of a list a list. It has at most as many of them as the whole, and two more per dimension of each
// piece.
func (l *Layout) Slice(lo, hi int64) (*Layout, error) {
	if lo < 0 || hi < lo || hi > l.size {
		return nil, fmt.Errorf("datatype: slice %d to %d must be inside the %d bytes of the layout", lo, hi, l.size)
	}
	s := &Layout{totals: totals{size: hi - lo}}
	if l.Strided() {
		for _, p := range l.pieces {
			s.pieces = sliceOf(s.pieces, p, lo-p.Offset, hi-p.Offset)
		}
		for i := range s.pieces {
			s.pieces[i].Offset -= lo
		}
		slices.SortFunc(s.pieces, func(p, q Piece) int { return int(p.Offset - q.Offset) })
	} else {
		s.list = sliceOfList(l.list, lo, hi)
	}
	s.bound()
	s.summarize()
	s.key = sync.OnceValue(s.hash)
	return s, nil
}

// sliceOf appends the part of a piece in bytes lo to hi of the packed buffer, counted from the piece's
// offset.
func sliceOf(all []Piece, p Piece, lo, hi int64) []Piece {
	if p.Rank == 0 {
		lo, hi = max(0, lo), min(p.Length, hi)
		if lo < hi {
			p.Displacement, p.Offset, p.Length = p.Displacement+lo, p.Offset+lo, hi-lo
			all = append(all, p)
		}
		return all
	}
	outer := p.Dims[p.Rank-1]
	inner := p
	inner.Rank--
	inner.Dims[inner.Rank] = Dim{}
	at := func(i int64) Piece {
		q := inner
		q.Displacement, q.Offset = p.Displacement+i*outer.Stride, p.Offset+i*outer.Packed
		return q
	}
	extent := inner.end() - inner.Offset // bytes of the repeated piece in the packed buffer, including gaps
	whole := [2]int64{clamp(ceilDiv(lo, outer.Packed), outer.Count),
		clamp(floorDiv(hi-extent, outer.Packed)+1, outer.Count)}
	first, last := clamp(floorDiv(lo, outer.Packed), outer.Count), clamp(ceilDiv(hi, outer.Packed), outer.Count)
	for i := first; i < min(whole[0], last); i++ {
		all = sliceOf(all, at(i), lo-i*outer.Packed, hi-i*outer.Packed)
	}
	if n := whole[1] - whole[0]; n > 0 {
		q := at(whole[0])
		if n > 1 {
			q.Rank, q.Dims[p.Rank-1] = p.Rank, Dim{n, outer.Stride, outer.Packed}
		}
		all = append(all, q)
	}
	for i := max(whole[0], whole[1], first); i < last; i++ {
		all = sliceOf(all, at(i), lo-i*outer.Packed, hi-i*outer.Packed)
	}
	return all
}

func clamp(n, most int64) int64 { return max(0, min(n, most)) }

// sliceOfList returns the blocks in bytes lo to hi of the packed buffer; empty but not nil if there are none.
func sliceOfList(list []Block, lo, hi int64) []Block {
	part := []Block{}
	offset := int64(0)
	for _, b := range list {
		from, to := max(lo, offset), min(hi, offset+b.Length)
		if from < to {
			part = append(part, Block{b.Displacement + from - offset, to - from})
		}
		if offset += b.Length; offset >= hi {
			break
		}
	}
	return part
}

// bound computes the bounds from the pieces or blocks.
func (l *Layout) bound() {
	first := true
	include := func(lo, hi int64) {
		if first {
			l.trueLB, l.trueUB, first = lo, hi, false
		}
		l.trueLB, l.trueUB = min(l.trueLB, lo), max(l.trueUB, hi)
	}
	for i := range l.pieces {
		include(l.pieces[i].Bounds())
	}
	for _, b := range l.list {
		include(b.Displacement, b.Displacement+b.Length)
	}
}

// Overlaps reports whether any byte occurs twice. Such a layout may be sent, but not received into.
//
// It takes O(n log n) for a list of n blocks. Strided pieces are not expanded: a piece whose dimensions nest,
// each stride larger than what is inside it, takes a few operations; for others it searches for integers for
// which a sum of strides is less than a block, from the largest stride down.
func (l *Layout) Overlaps() bool {
	if !l.Strided() {
		return listOverlaps(l.list)
	}
	pieces := slices.Clone(l.pieces)
	slices.SortFunc(pieces, func(p, q Piece) int {
		a, _ := p.Bounds()
		b, _ := q.Bounds()
		return cmp.Compare(a, b)
	})
	for i := range pieces {
		if pieces[i].overlapsItself() || overlapsAny(&pieces[i], pieces[i+1:]) {
			return true
		}
	}
	return false
}

func listOverlaps(list []Block) bool {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Block) int { return cmp.Compare(a.Displacement, b.Displacement) })
	for i := 1; i < len(sorted); i++ {
		if before := sorted[i-1]; before.Displacement+before.Length > sorted[i].Displacement {
			return true
		}
	}
	return false
}

// overlapsAny reports whether a piece overlaps one of others, which begin no lower and are sorted.
func overlapsAny(p *Piece, others []Piece) bool {
	_, end := p.Bounds()
	for i := range others {
		if start, _ := others[i].Bounds(); start >= end {
			return false
		}
		if p.overlaps(&others[i]) {
			return true
		}
	}
	return false
}

// A term is a stride times any integer from lo to hi.
type term struct{ stride, lo, hi int64 }

// overlapsItself reports whether two blocks of the piece overlap: whether there are steps along the
// dimensions, not all zero, whose total is less than a block. The first nonzero step may be assumed to be
// positive.
func (p *Piece) overlapsItself() bool {
	var terms []term
	for _, d := range p.Dims[:p.Rank] {
		terms = addTerm(terms, term{d.Stride, 1 - d.Count, d.Count - 1})
	}
	sortTerms(terms)
	for lead := range terms {
		rest := slices.Clone(terms[lead:])
		rest[0].lo = 1
		if reaches(0, rest, p.Length, p.Length) {
			return true
		}
	}
	return p.hasEqualStrides()
}

// hasEqualStrides reports whether two dimensions have the same stride, in either direction: then two of their
// blocks are equal. A stride of 0 is sufficient too, but is found as a term.
func (p *Piece) hasEqualStrides() bool {
	for i, d := range p.Dims[:p.Rank] {
		for _, e := range p.Dims[:i] {
			if d.Stride == e.Stride || d.Stride == -e.Stride {
				return true
			}
		}
	}
	return false
}

// overlaps reports whether a block of one piece overlaps a block of another.
func (p *Piece) overlaps(q *Piece) bool {
	var terms []term
	for _, d := range p.Dims[:p.Rank] {
		terms = addTerm(terms, term{d.Stride, 1 - d.Count, 0})
	}
	for _, d := range q.Dims[:q.Rank] {
		terms = addTerm(terms, term{d.Stride, 0, d.Count - 1})
	}
	sortTerms(terms)
	return reaches(q.Displacement-p.Displacement, terms, q.Length, p.Length)
}

// addTerm adds a term with a positive stride, or widens the one with that stride.
func addTerm(terms []term, t term) []term {
	if t.stride < 0 {
		t = term{-t.stride, -t.hi, -t.lo}
	}
	for i := range terms {
		if terms[i].stride == t.stride {
			terms[i].lo += t.lo
			terms[i].hi += t.hi
			return terms
		}
	}
	return append(terms, t)
}

// sortTerms puts the largest stride first.
func sortTerms(terms []term) {
	slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(b.stride, a.stride) })
}

// reaches reports whether base and the terms can add up to more than -below and less than above.
func reaches(base int64, terms []term, below, above int64) bool {
	if len(terms) == 0 {
		return -below < base && base < above
	}
	first, rest := terms[0], terms[1:]
	if first.stride == 0 {
		return first.lo <= first.hi && reaches(base, rest, below, above)
	}
	lo, hi := -below+1-base, above-1-base
	for _, t := range rest {
		lo, hi = lo-t.stride*t.hi, hi-t.stride*t.lo
	}
	from, to := max(first.lo, ceilDiv(lo, first.stride)), min(first.hi, floorDiv(hi, first.stride))
	if len(rest) == 0 {
		return from <= to
	}
	for x := from; x <= to; x++ {
		if reaches(base+x*first.stride, rest, below, above) {
			return true
		}
	}
	return false
}

// floorDiv returns the greatest integer at most a/b, for a positive b.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// ceilDiv returns the smallest integer at least a/b, for a positive b.
func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

// A summary collects common properties of blocks.
type summary struct {
	blocks, shortest, longest int64
	divides                   int64 // the bits that are set in any of the numbers
}

func (s *summary) block(displacement, length, times int64) {
	if s.blocks == 0 {
		s.shortest = length
	}
	s.blocks += times
	s.shortest, s.longest = min(s.shortest, length), max(s.longest, length)
	s.divides |= displacement | length
}

// summarize computes the totals that Commit does not know yet.
func (l *Layout) summarize() {
	var s summary
	for i := range l.pieces {
		p := &l.pieces[i]
		s.block(p.Displacement, p.Length, p.Blocks())
		s.divides |= p.Offset
		for _, d := range p.Dims[:p.Rank] {
			s.divides |= d.Stride | d.Packed
		}
	}
	for _, b := range l.list {
		s.block(b.Displacement, b.Length, 1)
	}
	l.blocks, l.minBlock, l.maxBlock = s.blocks, s.shortest, s.longest
	l.alignment = 1 << min(4, bits.TrailingZeros64(uint64(s.divides)))
}

// String returns the pieces, or the number of listed blocks and their sizes.
func (l *Layout) String() string {
	if !l.Strided() {
		return fmt.Sprintf("%d B in %d blocks of %d to %d", l.size, l.blocks, l.minBlock, l.maxBlock)
	}
	if len(l.pieces) == 0 {
		return "nothing"
	}
	var pieces []string
	for _, p := range l.pieces[:min(longest, len(l.pieces))] {
		pieces = append(pieces, p.String())
	}
	if len(l.pieces) > longest {
		pieces = append(pieces, fmt.Sprintf("... %d in total", len(l.pieces)))
	}
	return strings.Join(pieces, "; ")
}
