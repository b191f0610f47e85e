package domain

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Element is the type of one value of a field: one of the constants, or [Bytes].
// To an exchange only its size matters.
type Element string

// The numeric elements.
const (
	Float32    Element = "float32"
	Float64    Element = "float64"
	Complex64  Element = "complex64"
	Complex128 Element = "complex128"
	Int8       Element = "int8"
	Int16      Element = "int16"
	Int32      Element = "int32"
	Int64      Element = "int64"
	Uint8      Element = "uint8"
	Uint16     Element = "uint16"
	Uint32     Element = "uint32"
	Uint64     Element = "uint64"
)

// Bytes is an element of n bytes that is not a number.
func Bytes(n int) Element { return Element(strconv.Itoa(n) + " bytes") }

// Size returns the size in bytes, 0 if e is not an element.
func (e Element) Size() int {
	switch e {
	case Int8, Uint8:
		return 1
	case Int16, Uint16:
		return 2
	case Float32, Int32, Uint32:
		return 4
	case Float64, Int64, Uint64, Complex64:
		return 8
	case Complex128:
		return 16
	}
	digits, ok := strings.CutSuffix(string(e), " bytes")
	if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 {
		return n
	}
	return 0
}

// IsReal reports whether e is Float32 or Float64.
func (e Element) IsReal() bool { return e == Float32 || e == Float64 }

// IsComplex reports whether e has a real and an imaginary part.
func (e Element) IsComplex() bool { return e == Complex64 || e == Complex128 }

// IsInteger reports whether e is an integer, with or without a sign.
func (e Element) IsInteger() bool {
	return e.Size() > 0 && strings.HasPrefix(strings.TrimPrefix(string(e), "u"), "int")
}

// IsNumber reports whether e is one of the constants.
func (e Element) IsNumber() bool { return e.IsReal() || e.IsComplex() || e.IsInteger() }

// Scalar returns what e is made of: the type of both parts of a complex number, otherwise e.
func (e Element) Scalar() Element {
	switch e {
	case Complex64:
		return Float32
	case Complex128:
		return Float64
	}
	return e
}

// Encode returns a number as devices hold it, rounded to the nearest that e can be; complex elements have it as their
// real part. An element that is not a number, an integer out of range, and a finite number that rounds to infinity are
// errors.
func (e Element) Encode(v float64) ([]byte, error) {
	bits, ok := uint64(0), true
	switch scalar := e.Scalar(); {
	case scalar == Float32:
		bits = uint64(math.Float32bits(float32(v)))
		ok = math.IsInf(v, 0) || !math.IsInf(float64(float32(v)), 0)
	case scalar == Float64:
		bits = math.Float64bits(v)
	case e.IsInteger():
		low, high := 0.0, math.Exp2(float64(8*e.Size()))
		if e[0] == 'i' {
			low, high = -high/2, high/2
		}
		ok = v == math.Trunc(v) && low <= v && v < high
		if bits = uint64(int64(v)); v > 0 {
			bits = uint64(v)
		}
	default:
		return nil, fmt.Errorf("element: must be a number, got %q", e)
	}
	if !ok {
		return nil, fmt.Errorf("value: must be a number of type %s, got %v", e, v)
	}
	bytes, order := make([]byte, e.Size()), binary.NativeEndian
	switch e.Scalar().Size() {
	case 1:
		bytes[0] = byte(bits)
	case 2:
		order.PutUint16(bytes, uint16(bits))
	case 4:
		order.PutUint32(bytes, uint32(bits))
	case 8:
		order.PutUint64(bytes, bits)
	}
	return bytes, nil
}
