package datatype

// Basic is a predefined type: what the leaves of every type are.
type Basic uint8

// The predefined types of MPI that halox has data of.
const (
	ByteKind Basic = iota
	Int8Kind
	Int16Kind
	Int32Kind
	Int64Kind
	Uint8Kind
	Uint16Kind
	Uint32Kind
	Uint64Kind
	Float32Kind
	Float64Kind
	Complex64Kind
	Complex128Kind
	basics
)

// Size returns the number of bytes.
func (b Basic) Size() int64 {
	return [basics]int64{1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16}[b]
}

// Alignment returns the multiple of bytes at which a C compiler places the type in a struct. A complex number is aligned
// as its parts are.
func (b Basic) Alignment() int64 {
	return [basics]int64{1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 4, 8}[b]
}

// String returns the name, as in Go.
func (b Basic) String() string {
	return [basics]string{"byte", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
		"complex64", "complex128"}[b]
}
