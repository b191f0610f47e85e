package datatype

// fold turns runs of equal pieces at equal distances into one piece with a dimension more, and pieces that go on where others
// end into one, as often as that is possible.
func fold(pieces []Piece) []Piece {
	for {
		folded := extend(foldOnce(pieces))
		if len(folded) == len(pieces) {
			return folded
		}
		pieces = folded
	}
}

// extend merges neighbours that differ in the count of their outermost dimension at most, where the second goes on with the
// steps of the first. It works in place.
func extend(pieces []Piece) []Piece {
	extended := pieces[:0]
	for _, p := range pieces {
		if n := len(extended); n > 0 && extended[n-1].takes(&p) {
			continue
		}
		extended = append(extended, p)
	}
	return extended
}

// takes appends a piece that goes on where this one ends, and reports whether it does.
func (p *Piece) takes(q *Piece) bool {
	rank := max(p.Rank, q.Rank)
	if rank == 0 {
		return false
	}
	step := p.Dims[rank-1]
	if p.Rank < rank {
		step = q.Dims[rank-1]
	}
	mine, n := p.inside(rank, step)
	theirs, m := q.inside(rank, step)
	follows := q.Displacement-p.Displacement == n*step.Stride && q.Offset-p.Offset == n*step.Packed
	if n == 0 || m == 0 || !follows || !mine.isCopy(&theirs) {
		return false
	}
	step.Count = n + m
	p.Rank, p.Dims[rank-1] = rank, step
	return true
}

// inside returns what the piece repeats by that step as its dimension of that rank, and how often: once if it has one
// dimension less, not at all if it is no such repetition.
func (p *Piece) inside(rank int, step Dim) (Piece, int64) {
	inner := *p
	switch {
	case p.Rank < rank-1:
		return inner, 0
	case p.Rank < rank:
		return inner, 1
	}
	outer := p.Dims[rank-1]
	inner.Rank, inner.Dims[rank-1] = rank-1, Dim{}
	if outer.Stride != step.Stride || outer.Packed != step.Packed {
		return inner, 0
	}
	return inner, outer.Count
}

func foldOnce(pieces []Piece) []Piece {
	var folded []Piece
	for len(pieces) > 0 {
		n, d := siblings(pieces)
		p := pieces[0]
		if n > 1 {
			p = p.repeat(d)[0]
		}
		folded = append(folded, p)
		pieces = pieces[n:]
	}
	return folded
}

// siblings returns how many pieces at the front are copies of the first at equal distances, and the dimension that they
// make. They are fewer than two if the dimension would be one too many, or not the outermost one.
func siblings(pieces []Piece) (int, Dim) {
	first := &pieces[0]
	if len(pieces) == 1 || first.Rank == MaxDims {
		return 1, Dim{}
	}
	d := Dim{Stride: pieces[1].Displacement - first.Displacement, Packed: pieces[1].Offset - first.Offset}
	if d.Packed < first.reach() {
		return 1, Dim{}
	}
	n := 1
	for n < len(pieces) && pieces[n].isCopy(first) &&
		pieces[n].Displacement-pieces[n-1].Displacement == d.Stride && pieces[n].Offset-pieces[n-1].Offset == d.Packed {
		n++
	}
	d.Count = int64(n)
	return n, d
}

// isCopy reports whether two pieces differ at most in where they begin.
func (p *Piece) isCopy(q *Piece) bool {
	return p.Length == q.Length && p.Rank == q.Rank && p.Dims == q.Dims
}

// reach returns the least Packed of a dimension outside of those of the piece.
func (p *Piece) reach() int64 {
	if p.Rank == 0 {
		return p.Length
	}
	outer := p.Dims[p.Rank-1]
	return outer.Count * outer.Packed
}

// join merges neighbours without repetitions that touch, in place. Between them lies nothing in the packed buffer.
func join(pieces []Piece) []Piece {
	joined := pieces[:0]
	for _, p := range pieces {
		if n := len(joined); n > 0 && p.Rank == 0 && joined[n-1].Rank == 0 &&
			joined[n-1].Displacement+joined[n-1].Length == p.Displacement {
			joined[n-1].Length += p.Length
			continue
		}
		joined = append(joined, p)
	}
	return joined
}
