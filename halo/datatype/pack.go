package datatype

import "fmt"

// Pack copies count elements of a type from src to the start of dst, in pack order. Displacement 0 of the first element
// lies at src[origin]. It is the definition of packing, written as simply as can be: it walks through the type map, one
// predefined type at a time. [Layout.Pack] does the same fast.
//
// An error says that dst is too short or that elements reach out of src; then nothing was copied.
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

// Unpack copies what [Pack] packed from the start of src back to where it lies in dst, and touches no other byte. Where
// elements overlap, which MPI forbids of what is received into, the last in pack order stays.
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
		return fmt.Errorf("count %d is negative", count)
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
		return fmt.Errorf("%d packed bytes do not fit into %d", size, packed)
	}
	var c checked
	outside := c.add(origin, lo) < 0 || c.add(origin, hi) > int64(buffer)
	if size > 0 && (outside || c.overflow) {
		return fmt.Errorf("bytes %d to %d around %d reach out of %d", lo, hi, origin, buffer)
	}
	return nil
}
