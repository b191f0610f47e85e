package datatype

// The predefined types. They have neither gaps nor padding.
var (
	Byte       = named(ByteKind)
	Int8       = named(Int8Kind)
	Int16      = named(Int16Kind)
	Int32      = named(Int32Kind)
	Int64      = named(Int64Kind)
	Uint8      = named(Uint8Kind)
	Uint16     = named(Uint16Kind)
	Uint32     = named(Uint32Kind)
	Uint64     = named(Uint64Kind)
	Float32    = named(Float32Kind)
	Float64    = named(Float64Kind)
	Complex64  = named(Complex64Kind)
	Complex128 = named(Complex128Kind)
)

// named returns the type of one basic.
func named(b Basic) *Type {
	size := b.Size()
	return &Type{Envelope{Combiner: Named, Basic: b}, measured{
		size:      size,
		extent:    bounds{hi: size, any: true},
		data:      bounds{hi: size, any: true},
		alignment: b.Alignment(),
		signature: signatureOf(b),
	}}
}
