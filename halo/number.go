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

// encode returns the number as devices hold it, rounded to what the element can
// be; a complex element gets it as its real part. It is an error if the element
// is no number, or v not one of its whole numbers.
func (e Element) encode(v float64) ([]byte, error) {
	order := binary.NativeEndian
	bytes := make([]byte, e.Size())
	if e.whole() && (v != math.Trunc(v) || math.Abs(v) >= math.Exp2(float64(8*e.Size()-1))) {
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
