package kernels

// Number is the type of a value that kernels add and compare: "float32",
// "float64", "int32", "int64", "complex64" or "complex128".
type Number string
