package field

// A DType is the type of the numbers in a field file, in NumPy's notation.
type DType string

// The types that a field file can have; both little-endian.
const (
	Float64 DType = "<f8"
	Float32 DType = "<f4"
)

// bytes is the size of one number, 0 for a type that is not known.
func (t DType) bytes() int {
	switch t {
	case Float64:
		return 8
	case Float32:
		return 4
	default:
		return 0
	}
}
