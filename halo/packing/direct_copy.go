package packing

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
)

// minStored is the mean length in bytes of blocks that are worth to be stored over a
// link one by one: shorter ones travel better packed. (Columns of a float64 matrix of 8 MiB
// between two H200: 164 us stored, 64 us packed, copied and unpacked.)
const minStored = 64

// isFine reports whether blocks are too short for that.
func isFine(l *datatype.Layout) bool {
	return l.NumBlocks() > 1 && l.Size()/l.NumBlocks() < minStored
}

// directCopy makes a job of the source's packer that copies from one layout to the other at once,
// with no packed buffer between them; ErrUnsuited, if the two do not allow it. The bytes
// that are n-th when packed go from one to the other.
func directCopy(dst, src *Side) (*Job, error) {
	from, to := src.Message.Layout, dst.Message.Layout
	j := &Job{Engine: Units}
	if copies, ok := directPieces(dst, src); ok {
		c, err := src.Packer.copier.Strided("send", src.Packer.options.strided(), copies...)
		if err != nil {
			return nil, err
		}
		j.Engine = Transform
		j.resources.Add(c)
		return j, j.launch(c.Kernel, nil)
	}
	if n := max(from.NumBlocks(), to.NumBlocks()); n > maxListed || isFine(from) || isFine(to) {
		return nil, fmt.Errorf("%w: %d blocks of %d bytes in all", ErrUnsuited, n, from.Size())
	}
	list, places := directBlocks(from, to)
	table, err := src.Packer.units.Scatter(places, list, pack.UnitOptions{Unit: src.Packer.options.UnitBytes, MaxBlocks: src.Packer.options.Blocks})
	if err != nil {
		return nil, err
	}
	j.resources.Add(table)
	data, start := dst.Place.Data, dst.Place.Origin+to.TrueLB()
	c, err := table.Pack(data.Memory.Span(data.Offset+start, to.TrueUB()-to.TrueLB()), src.Place.Data, src.Place.Origin)
	if err != nil {
		return nil, err
	}
	j.resources.Add(c)
	j.queue = c.Queue
	return j, nil
}

// directPieces returns the copies from piece to piece, where the pieces of both layouts have
// the same shape.
func directPieces(dst, src *Side) (all []pack.Strided, ok bool) {
	from, to := src.Message.Layout, dst.Message.Layout
	if !from.Strided() || !to.Strided() || len(from.Pieces()) != len(to.Pieces()) {
		return nil, false
	}
	for i := range from.Pieces() {
		p, q := &from.Pieces()[i], &to.Pieces()[i]
		if !sameShape(p, q) || p.Length < minStored {
			return nil, false
		}
		s := pack.Strided{
			Dst:    pack.Point{Data: dst.Place.Data, Offset: dst.Place.Origin + q.Displacement},
			Src:    pack.Point{Data: src.Place.Data, Offset: src.Place.Origin + p.Displacement},
			Length: p.Length,
		}
		for d := range p.Rank {
			s.Dims = append(s.Dims, pack.Dim{Count: p.Dims[d].Count, Dst: q.Dims[d].Stride, Src: p.Dims[d].Stride})
		}
		all = append(all, s)
	}
	return all, true
}

// sameShape reports whether two pieces differ in where their blocks lie in memory only.
func sameShape(p, q *datatype.Piece) bool {
	if p.Length != q.Length || p.Rank != q.Rank || p.Offset != q.Offset {
		return false
	}
	for d := range p.Rank {
		if p.Dims[d].Count != q.Dims[d].Count || p.Dims[d].Packed != q.Dims[d].Packed {
			return false
		}
	}
	return true
}

// directBlocks cuts the packed bytes wherever a block of either layout ends. It returns the
// stretches as they lie in the first, and where each begins in the second, counted from
// its lower bound.
func directBlocks(from, to *datatype.Layout) (list []pack.Block, places []int64) {
	var ends []datatype.Block // what is left of the blocks of the second
	for _, b := range to.Blocks() {
		ends = append(ends, b)
	}
	for _, b := range from.Blocks() {
		for b.Length > 0 {
			e := &ends[0]
			n := min(b.Length, e.Length)
			list = append(list, pack.Block{Displacement: b.Displacement, Length: n})
			places = append(places, e.Displacement-to.TrueLB())
			b.Displacement, b.Length = b.Displacement+n, b.Length-n
			e.Displacement, e.Length = e.Displacement+n, e.Length-n
			if e.Length == 0 {
				ends = ends[1:]
			}
		}
	}
	return list, places
}
