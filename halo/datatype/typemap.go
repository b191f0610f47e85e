package datatype

import (
	"fmt"
	"iter"
)

// TypeMap yields the displacement of every predefined type in one element, in pack order: the definition of a
// type. It walks the tree of constructors in the simplest way; tests compare everything faster with it.
func (t *Type) TypeMap() iter.Seq2[int64, Basic] {
	return func(yield func(int64, Basic) bool) { t.walk(0, yield) }
}

// walk yields the type map of an element at a displacement and reports whether to continue.
func (t *Type) walk(at int64, yield func(int64, Basic) bool) bool {
	if t.env.Combiner == Named {
		return yield(at, t.env.Basic)
	}
	if t.size == 0 {
		return true
	}
	return t.blocks(func(displacement int64, length int, child *Type) bool {
		if child.size == 0 {
			return true // there may be any number of them
		}
		for i := range int64(length) {
			if !child.walk(at+displacement+i*child.Extent(), yield) {
				return false
			}
		}
		return true
	})
}

// blocks calls f for every block of the constructor, in order, until it returns false: length elements of a child, at a
// displacement in bytes. It reports whether all calls returned true.
func (t *Type) blocks(f func(displacement int64, length int, child *Type) bool) bool {
	e := &t.env
	switch e.Combiner {
	case ContiguousCombiner:
		return f(0, e.Count, t.child())
	case VectorCombiner, HVectorCombiner:
		return t.vectorBlocks(f)
	case SubarrayCombiner:
		return t.rows(len(e.Sizes)-1, 0, f)
	case ResizedCombiner:
		return f(0, 1, t.child())
	}
	for i := range e.Displacements {
		if !f(e.Block(i)) {
			return false
		}
	}
	return true
}

func (t *Type) vectorBlocks(f func(int64, int, *Type) bool) bool {
	stride := t.env.StrideBytes()
	for i := range int64(t.env.Count) {
		if !f(i*stride, t.env.BlockLength, t.child()) {
			return false
		}
	}
	return true
}

// rows calls f for every row of a subarray within its level-th dimension, counted from the fastest, at an
// index of elements.
func (t *Type) rows(level int, index int64, f func(int64, int, *Type) bool) bool {
	e := &t.env
	dims := e.FastestFirst()
	d := dims[level]
	if level == 0 {
		return f((index+int64(e.Starts[d]))*t.child().Extent(), e.Subsizes[d], t.child())
	}
	for i := range e.Subsizes[d] {
		below := int64(e.Sizes[dims[level-1]])
		if !t.rows(level-1, (index+int64(e.Starts[d]+i))*below, f) {
			return false
		}
	}
	return true
}

// Runs yields the sequence of predefined types in one element, run by run: each with the number of its
// consecutive occurrences. It walks through the whole type map without storing it.
func (t *Type) Runs() iter.Seq2[Basic, int64] {
	return func(yield func(Basic, int64) bool) {
		var last Basic
		var run int64
		for _, b := range t.TypeMap() {
			if b != last && run > 0 {
				if !yield(last, run) {
					return
				}
				run = 0
			}
			last = b
			run++
		}
		if run > 0 {
			yield(last, run)
		}
	}
}

// Pack copies count elements of a type from src to the start of dst, in pack order. Displacement 0 of the
// first element is at src[origin]. It defines packing in the simplest way: it walks through the type map, one
// predefined type at a time. [Layout.Pack] is fast.
//
// If dst is too short, or elements are not inside src, it returns an error and copies nothing.
func Pack(dst, src []byte, origin int64, t *Type, count int) error {
	if err := t.fits(len(dst), len(src), origin, count); err != nil {
		return fmt.Errorf("datatype: pack: %w", err)
	}
	t.elements(count, func(displacement int64, b Basic) {
		n := copy(dst[:b.Size()], src[origin+displacement:])
		dst = dst[n:]
	})
	return nil
}

// Unpack copies bytes packed by [Pack] from the start of src to their places in dst, and changes no other
// bytes. If elements overlap, which MPI forbids for receives, the last in pack order remains.
func Unpack(dst []byte, origin int64, src []byte, t *Type, count int) error {
	if err := t.fits(len(src), len(dst), origin, count); err != nil {
		return fmt.Errorf("datatype: unpack: %w", err)
	}
	t.elements(count, func(displacement int64, b Basic) {
		n := copy(dst[origin+displacement:], src[:b.Size()])
		src = src[n:]
	})
	return nil
}

// elements calls f for every predefined type of count elements.
func (t *Type) elements(count int, f func(displacement int64, b Basic)) {
	if t.size == 0 {
		return
	}
	for i := range int64(count) {
		t.walk(i*t.Extent(), func(displacement int64, b Basic) bool {
			f(displacement, b)
			return true
		})
	}
}

// fits returns an error unless count elements fit into the two buffers.
func (t *Type) fits(packed, buffer int, origin int64, count int) error {
	if t == nil {
		return errNoType
	}
	if count < 0 {
		return fmt.Errorf("count must not be negative, got %d", count)
	}
	var c checked
	size := c.mul(t.size, int64(count))
	reach := t.data.repeat(&c, int64(count), t.Extent())
	if c.overflow {
		return errOverflow
	}
	return fits(packed, buffer, origin, size, reach.lo, reach.hi)
}

// fits returns an error unless size bytes fit into packed, and the range from lo to hi about the origin into buffer.
func fits(packed, buffer int, origin, size, lo, hi int64) error {
	if int64(packed) < size {
		return fmt.Errorf("the packed buffer must have at least %d bytes, got %d", size, packed)
	}
	var c checked
	outside := c.add(origin, lo) < 0 || c.add(origin, hi) > int64(buffer)
	if size > 0 && (outside || c.overflow) {
		return fmt.Errorf("bytes %d to %d from origin %d must be in the %d bytes of the buffer", lo, hi, origin, buffer)
	}
	return nil
}
