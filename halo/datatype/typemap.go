package datatype

import "iter"

// TypeMap yields the displacement of every predefined type in one element, in pack order: the definition of what a type
// is. It walks through the tree of constructors in the simplest way; everything faster is held against it.
func (t *Type) TypeMap() iter.Seq2[int64, Basic] {
	return func(yield func(int64, Basic) bool) { t.walk(0, yield) }
}

// walk yields the type map of an element at a displacement and reports whether to go on.
func (t *Type) walk(at int64, yield func(int64, Basic) bool) bool {
	if t.env.Combiner == Named {
		return yield(at, t.env.Basic)
	}
	if t.size == 0 {
		return true
	}
	return t.blocks(func(displacement int64, length int, child *Type) bool {
		if child.size == 0 {
			return true // any number of them
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
	for i, displacement := range e.Displacements {
		length, child := e.block(i)
		if !f(displacement*e.unit(child), length, child) {
			return false
		}
	}
	return true
}

func (t *Type) vectorBlocks(f func(int64, int, *Type) bool) bool {
	stride := t.stride(new(checked))
	for i := range int64(t.env.Count) {
		if !f(i*stride, t.env.BlockLength, t.child()) {
			return false
		}
	}
	return true
}

// rows calls f for every row of a subarray within its level-th dimension, counted from the one that runs fastest, at an
// index of elements.
func (t *Type) rows(level int, index int64, f func(int64, int, *Type) bool) bool {
	e := &t.env
	dims := e.fastestFirst()
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

// Runs yields the sequence of predefined types in one element, run by run: each with the number of times that it
// follows itself. It walks through the whole type map and keeps nothing.
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
