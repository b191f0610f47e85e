package datatype

// measure fills in size, bounds, alignment and signature from the envelope. Lists are walked through once, everything
// else is computed in closed form.
func (t *Type) measure(c *checked) {
	t.alignment = 1
	switch e := &t.env; e.Combiner {
	case ContiguousCombiner:
		t.include(c, blockOf(c, e.Count, t.child()))
	case VectorCombiner, HVectorCombiner:
		t.include(c, blockOf(c, e.BlockLength, t.child()).repeat(c, int64(e.Count), t.stride(c)))
	case SubarrayCombiner:
		t.measureSubarray(c)
	case ResizedCombiner:
		t.include(c, blockOf(c, 1, t.child()))
		t.extent = bounds{lo: e.LB, hi: c.add(e.LB, e.Extent), any: true, set: true}
	default:
		t.measureList(c)
	}
	t.extent.pad(c, t.alignment)
	c.sub(t.extent.hi, t.extent.lo)
	c.sub(t.data.hi, t.data.lo)
}

func (t *Type) measureList(c *checked) {
	e := &t.env
	for i, displacement := range e.Displacements {
		length, child := e.block(i)
		unit := e.unit(child)
		t.include(c, blockOf(c, length, child).shift(c, c.mul(displacement, unit)))
	}
}

func (t *Type) measureSubarray(c *checked) {
	m := blockOf(c, 1, t.child())
	whole := t.child().Extent()
	for _, d := range t.env.fastestFirst() {
		start := c.mul(int64(t.env.Starts[d]), whole)
		m = m.repeat(c, int64(t.env.Subsizes[d]), whole).shift(c, start)
		whole = c.mul(whole, int64(t.env.Sizes[d]))
	}
	t.include(c, m)
	t.extent = bounds{hi: whole, any: true, set: true}
}

// fastestFirst returns the dimensions of a subarray, the one that runs fastest first.
func (e *Envelope) fastestFirst() []int {
	dims := make([]int, len(e.Sizes))
	for d := range dims {
		dims[d] = d
		if e.Order == COrder {
			dims[d] = len(dims) - 1 - d
		}
	}
	return dims
}

// stride returns the bytes between two blocks of a vector.
func (t *Type) stride(c *checked) int64 {
	if t.env.Combiner == VectorCombiner {
		return c.mul(t.env.Stride, t.child().Extent())
	}
	return t.env.Stride
}

// block returns the length and the type of block i of a list.
func (e *Envelope) block(i int) (int, *Type) {
	length, child := e.BlockLength, e.Types[0]
	if e.BlockLengths != nil {
		length = e.BlockLengths[i]
	}
	if e.Combiner == StructCombiner {
		child = e.Types[i]
	}
	return length, child
}

// unit returns what the displacements of a list are counted in, in bytes.
func (e *Envelope) unit(child *Type) int64 {
	if e.Combiner == IndexedCombiner || e.Combiner == IndexedBlockCombiner {
		return child.Extent()
	}
	return 1
}

// blockOf measures length elements of a type one after another.
func blockOf(c *checked, length int, t *Type) measured {
	return t.measured.repeat(c, int64(length), t.Extent())
}

func (m measured) repeat(c *checked, count, stride int64) measured {
	if count == 0 {
		return measured{alignment: 1}
	}
	m.size = c.mul(m.size, count)
	m.extent = m.extent.repeat(c, count, stride)
	m.data = m.data.repeat(c, count, stride)
	m.signature = m.signature.Times(count)
	return m
}

func (m measured) shift(c *checked, by int64) measured {
	m.extent, m.data = m.extent.shift(c, by), m.data.shift(c, by)
	return m
}

// include adds a part to the type, after all that was added before it.
func (t *Type) include(c *checked, m measured) {
	t.size = c.add(t.size, m.size)
	t.extent.join(m.extent)
	t.data.join(m.data)
	t.alignment = max(t.alignment, m.alignment)
	t.signature = t.signature.Then(m.signature)
}
