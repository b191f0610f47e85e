package packing

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
)

// The engines of strided pieces.
const (
	Targeted  Engine = "targeted"  // one kernel for what is one strided piece or has blocks of one length (Wu et al. 3.1, HAND's TK)
	Transform Engine = "transform" // a list of vectors (HAND's TR)
)

var (
	targetedEngine  = engine{Targeted, 1, (*Packer).targeted}
	transformEngine = engine{Transform, 1, (*Packer).transform}
)

// strided returns the copy of a piece.
func (t *task) strided(p *datatype.Piece) pack.Strided {
	s := pack.Strided{
		Dst:    pack.Point{Data: t.packed, Offset: p.Offset},
		Src:    pack.Point{Data: t.place.Data, Offset: t.place.Origin + p.Displacement},
		Length: p.Length,
	}
	for _, d := range p.Dims[:p.Rank] {
		s.Dims = append(s.Dims, pack.Dim{Count: d.Count, Dst: d.Packed, Src: d.Stride})
	}
	if t.unpack {
		s = reversed(s)
	}
	return s
}

// reversed returns the copy the other way.
func reversed(s pack.Strided) pack.Strided {
	s.Dst, s.Src = s.Src, s.Dst
	for i := range s.Dims {
		d := &s.Dims[i]
		d.Dst, d.Src = d.Src, d.Dst
	}
	return s
}

// targeted makes a job of one kernel for a shape: a strided piece of up to four
// dimensions, as vectors and subarrays in either order are, or blocks of one length.
func (p *Packer) targeted(j *Job, t *task) error {
	l := t.message.Layout
	switch {
	case l.Strided() && len(l.Pieces()) == 1:
		return p.move(j, t, []pack.Strided{t.strided(&l.Pieces()[0])})
	case !l.Strided() && l.MinBlock() == l.MaxBlock():
		return p.listed(j, t, true)
	}
	if list := t.message.equalBlocks(); list != nil {
		return p.uniform(j, t, list)
	}
	return fmt.Errorf("%w: it is neither one strided piece nor blocks of one length", ErrUnsuited)
}

// transform makes a job of vectors: the pieces of a strided layout, or those that a list
// of blocks falls into. HAND launches a kernel for each; here one works on all.
func (p *Packer) transform(j *Job, t *task) error {
	l := t.message.Layout
	if !l.Strided() {
		vectors, err := t.vectors()
		if err != nil {
			return err
		}
		return p.move(j, t, vectors)
	}
	var all []pack.Strided
	for i := range l.Pieces() {
		all = append(all, t.strided(&l.Pieces()[i]))
	}
	return p.move(j, t, all)
}

// move makes a job of one launch for all the copies.
func (p *Packer) move(j *Job, t *task, all []pack.Strided) error {
	c, err := p.copier.Strided(t.name(), p.options.strided(), all...)
	if err != nil {
		return err
	}
	j.resources.Add(c)
	return j.launch(c.Kernel, nil)
}

// maxVectors is how many vectors a list may fall into.
const maxVectors = 1 << 16

// vectors cuts a list of blocks into vectors: blocks of one length, one distance apart.
func (t *task) vectors() (all []pack.Strided, err error) {
	list := t.message.Layout.List()
	offset := int64(0)
	for len(list) > 0 {
		n, stride := vectorLength(list)
		v := datatype.Piece{Displacement: list[0].Displacement, Offset: offset, Length: list[0].Length, Rank: 1}
		v.Dims[0] = datatype.Dim{Count: int64(n), Stride: stride, Packed: list[0].Length}
		if all = append(all, t.strided(&v)); len(all) > maxVectors {
			return nil, fmt.Errorf("%w: it falls into more than %d vectors", ErrUnsuited, maxVectors)
		}
		offset += int64(n) * list[0].Length
		list = list[n:]
	}
	return all, nil
}

// vectorLength returns how many of the first blocks are a vector, and their distance.
func vectorLength(list []datatype.Block) (n int, stride int64) {
	if len(list) == 1 || list[1].Length != list[0].Length {
		return 1, 0
	}
	stride = list[1].Displacement - list[0].Displacement
	n = 2
	for n < len(list) && list[n].Length == list[0].Length && list[n].Displacement-list[n-1].Displacement == stride {
		n++
	}
	return n, stride
}
