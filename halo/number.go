package halo

import (
	"encoding/binary"
	"fmt"
	"math"
)

// complex reports whether an element has a real and an imaginary part.
func (e Element) complex() bool { return e == Complex64 || e == Complex128 }

// whole reports whether an element is a whole number.
func (e Element) whole() bool { return e == Int32 || e == Int64 }

// scalarSize returns the size in bytes of what a number is made of, two scalars if
// it is complex, and 1 if the element is no number.
func (e Element) scalarSize() int {
	switch e {
	case Float32, Float64, Int32, Int64:
		return e.Size()
	case Complex64, Complex128:
		return e.Size() / 2
	}
	return 1
}

// alignment returns what addresses of a field's arrays are multiples of, in bytes.
func (s Spec) alignment() int {
	if s.Type != nil {
		return int(s.Type.Alignment())
	}
	return s.Element.scalarSize()
}

// holds reports whether the element can be v, rounded if it is a real: a whole
// number of its range, or no finite number beyond the largest.
func (e Element) holds(v float64) bool {
	switch e {
	case Int32, Int64:
		limit := math.Exp2(float64(8*e.Size() - 1))
		return v == math.Trunc(v) && v >= -limit && v < limit
	case Float32, Complex64:
		return math.IsInf(v, 0) || !math.IsInf(float64(float32(v)), 0)
	}
	return true
}

// Encode returns the number as devices hold it, rounded to what the element can
// be; a complex element gets it as its real part. It is an error if the element
// is no number, or cannot hold v.
func (e Element) Encode(v float64) ([]byte, error) {
	order := binary.NativeEndian
	bytes := make([]byte, e.Size())
	if !e.holds(v) {
		return nil, fmt.Errorf("%v is no %s", v, e)
	}
	switch e {
	case Float32, Complex64:
		order.PutUint32(bytes, math.Float32bits(float32(v)))
	case Float64, Complex128:
		order.PutUint64(bytes, math.Float64bits(v))
	case Int32:
		order.PutUint32(bytes, uint32(int32(v)))
	case Int64:
		order.PutUint64(bytes, uint64(int64(v)))
	default:
		return nil, fmt.Errorf("elements of %s hold no numbers", e)
	}
	return bytes, nil
}
