package datatype

// compress returns the pattern of blocks in pack order: strided pieces if they are regular, else the merged list. It may
// change the slice and keep it.
func compress(blocks []Block) pattern {
	if len(blocks) == 0 {
		return pattern{}
	}
	size := sum(blocks)
	if pieces := strided(blocks); pieces != nil {
		return pattern{pieces: pieces, size: size}
	}
	blocks = merge(blocks)
	if pieces := strided(blocks); pieces != nil {
		return pattern{pieces: pieces, size: size}
	}
	pieces := runs(blocks)
	if len(pieces) <= MaxPieces {
		return pattern{pieces: fold(pieces), size: size}
	}
	return pattern{list: blocks, size: size}
}

// strided returns the pieces of blocks that are a short pattern repeated over a regular grid; nil if they are not, or if the
// pieces are too many.
func strided(blocks []Block) []Piece {
	period, dims, ok := regular(blocks)
	if !ok {
		return nil
	}
	body := blocks[:period]
	packed := sum(body)
	pieces := fold(runs(merge(append([]Block(nil), body...))))
	for _, d := range dims {
		d.Packed = packed
		packed *= d.Count
		if pieces, ok = repeatAll(pieces, d); !ok || len(pieces) > MaxPieces {
			return nil
		}
	}
	return pieces
}

// regular looks for the shortest group, of at most MaxPieces blocks, of which the list is copies on a grid, and returns the
// length of the group and the dimensions of the grid. A single block is regular.
func regular(blocks []Block) (period int, dims []Dim, ok bool) {
	if len(blocks) == 0 {
		return 0, nil, false
	}
	if dims, ok = grid(blocks, 1); ok && periodic(blocks, 1) {
		return 1, dims, true
	}
	// A group shorter than the run at the front would be part of a run everywhere, and single blocks have failed.
	for period = max(2, equalRun(blocks)); period <= min(MaxPieces, len(blocks)/2); period++ {
		if len(blocks)%period != 0 || !periodic(blocks, period) {
			continue
		}
		if dims, ok = grid(blocks, period); ok {
			return period, dims, true
		}
	}
	return 0, nil, false
}

// periodic reports whether each group of blocks is the first one, moved.
func periodic(blocks []Block, period int) bool {
	first := blocks[0].Displacement
	start := first
	for i, b := range blocks {
		in := i % period
		if in == 0 {
			start = b.Displacement
		}
		if b.Length != blocks[in].Length || b.Displacement-start != blocks[in].Displacement-first {
			return false
		}
	}
	return true
}

// grid finds the dimensions over which the first blocks of all groups are spread, innermost first, without Packed. Each
// dimension takes as many steps as it can, so that the result is unique.
func grid(blocks []Block, period int) ([]Dim, bool) {
	var dims []Dim
	for period < len(blocks) {
		d := firstRun(blocks, period)
		group := period * int(d.Count)
		if len(blocks)%group != 0 || !spacedBy(blocks, period, d) {
			return nil, false
		}
		dims = append(dims, d)
		period = group
	}
	return dims, true
}

// firstRun returns how many of the groups at the front have equal distances, and the distance.
func firstRun(blocks []Block, period int) Dim {
	d := Dim{Count: 2, Stride: blocks[period].Displacement - blocks[0].Displacement}
	for i := 2 * period; i < len(blocks) && blocks[i].Displacement-blocks[i-period].Displacement == d.Stride; i += period {
		d.Count++
	}
	return d
}

// spacedBy reports whether within each d.Count groups distances are d.Stride.
func spacedBy(blocks []Block, period int, d Dim) bool {
	in := int64(0)
	for i := period; i < len(blocks); i += period {
		in++
		if in == d.Count {
			in = 0
			continue
		}
		if blocks[i].Displacement-blocks[i-period].Displacement != d.Stride {
			return false
		}
	}
	return true
}

// runs returns blocks as pieces of at most one dimension, as long as they last. It gives up after more pieces than can be of
// use, and returns too many.
func runs(blocks []Block) []Piece {
	var pieces []Piece
	offset := int64(0)
	for len(blocks) > 0 && len(pieces) <= MaxPieces {
		n := equalRun(blocks)
		p := Piece{Displacement: blocks[0].Displacement, Offset: offset, Length: blocks[0].Length}
		if n > 1 {
			p = p.repeat(Dim{Count: int64(n), Stride: blocks[1].Displacement - p.Displacement, Packed: p.Length})[0]
		}
		pieces = append(pieces, p)
		offset += p.Size()
		blocks = blocks[n:]
	}
	return pieces
}

// equalRun returns how many blocks at the front have equal lengths and distances.
func equalRun(blocks []Block) int {
	n := 1
	for n < len(blocks) && blocks[n].Length == blocks[0].Length &&
		blocks[n].Displacement-blocks[n-1].Displacement == blocks[1].Displacement-blocks[0].Displacement {
		n++
	}
	return n
}
