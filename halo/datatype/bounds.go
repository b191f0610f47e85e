package datatype

// bounds is a range of displacements, in bytes. Its zero value holds nothing.
type bounds struct {
	lo, hi int64
	any    bool // holds something
	set    bool // was set: is a pair of markers
}

// join widens the bounds to hold other. Markers win over what is not marked.
func (b *bounds) join(other bounds) {
	switch {
	case !other.any || b.set && !other.set:
	case !b.any || other.set && !b.set:
		*b = other
	default:
		b.lo, b.hi = min(b.lo, other.lo), max(b.hi, other.hi)
	}
}

// shift returns the bounds moved by a displacement.
func (b bounds) shift(c *checked, by int64) bounds {
	if b.any {
		b.lo, b.hi = c.add(b.lo, by), c.add(b.hi, by)
	}
	return b
}

// repeat returns the bounds of count copies, stride bytes apart.
func (b bounds) repeat(c *checked, count, stride int64) bounds {
	if count == 0 || !b.any {
		return bounds{}
	}
	last := b.shift(c, c.mul(count-1, stride))
	b.join(last)
	return b
}

// pad rounds the upper bound up so that the extent is a multiple of the alignment, unless it was set.
func (b *bounds) pad(c *checked, alignment int64) {
	if b.set || !b.any {
		return
	}
	if over := c.sub(b.hi, b.lo) % alignment; over != 0 {
		b.hi = c.add(b.hi, alignment-over)
	}
}
