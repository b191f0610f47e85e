package datatype

import (
	"cmp"
	"slices"
)

// Overlaps reports whether any byte occurs twice. Such a layout may be sent, but not received into.
//
// It takes O(n log n) for a list of n blocks. Of strided pieces no block is looked at: a piece whose dimensions nest, each
// stride past what is inside it, takes a few operations; for others it is a matter of integers for which a sum of strides
// falls within a block, searched from the largest stride down.
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

// overlapsItself reports whether two blocks of the piece overlap: whether there are steps along the dimensions, not all
// zero, that lead less than a block away. The first step that is not zero may be taken as positive.
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

// hasEqualStrides reports whether two dimensions have the same stride, in either direction: then two of their blocks are
// the same. A stride of 0 does it alone, but is found as a term.
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
