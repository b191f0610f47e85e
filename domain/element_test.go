package domain

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

func TestElements(t *testing.T) {
	type encoded struct {
		value float64
		as    any // nil if it is rejected
	}
	for e, c := range map[Element]struct {
		size                   int
		real, complex, integer bool
		encoded                []encoded
	}{
		Float32:    {4, true, false, false, []encoded{{math.Inf(-1), float32(math.Inf(-1))}, {0.1, float32(0.1)}, {1e39, nil}}},
		Float64:    {8, true, false, false, []encoded{{math.Inf(1), math.Inf(1)}, {-1e308, -1e308}}},
		Complex64:  {8, false, true, false, []encoded{{0.1, complex64(0.1)}, {-1e39, nil}}},
		Complex128: {16, false, true, false, []encoded{{0.1, complex128(0.1)}}},
		Int8:       {1, false, false, true, []encoded{{-128, int8(-128)}, {127, int8(127)}, {128, nil}}},
		Int16:      {2, false, false, true, []encoded{{-3, int16(-3)}, {0.5, nil}, {math.NaN(), nil}}},
		Int32:      {4, false, false, true, []encoded{{-1 << 31, int32(-1 << 31)}, {1 << 31, nil}}},
		Int64:      {8, false, false, true, []encoded{{-1 << 63, int64(-1 << 63)}, {1 << 63, nil}}},
		Uint8:      {1, false, false, true, []encoded{{255, uint8(255)}, {-1, nil}}},
		Uint16:     {2, false, false, true, []encoded{{1<<16 - 1, uint16(1<<16 - 1)}, {math.Inf(1), nil}}},
		Uint32:     {4, false, false, true, []encoded{{1<<32 - 1, uint32(1<<32 - 1)}, {1 << 32, nil}}},
		Uint64:     {8, false, false, true, []encoded{{1 << 63, uint64(1 << 63)}, {1 << 64, nil}}},
		Bytes(12):  {12, false, false, false, []encoded{{0, nil}}},
		"0 bytes":  {0, false, false, false, []encoded{{0, nil}}},
		"int":      {0, false, false, false, []encoded{{0, nil}}},
	} {
		if e.Size() != c.size || e.IsReal() != c.real || e.IsComplex() != c.complex || e.IsInteger() != c.integer ||
			e.IsNumber() != (c.real || c.complex || c.integer) {
			t.Errorf("%s: %d bytes, real %t, complex %t, integer %t", e, e.Size(), e.IsReal(), e.IsComplex(), e.IsInteger())
		}
		for _, v := range c.encoded {
			got, err := e.Encode(v.value)
			want := []byte(nil)
			if v.as != nil {
				want, _ = binary.Append(nil, binary.NativeEndian, v.as)
			}
			if !bytes.Equal(got, want) || (err == nil) != (v.as != nil) {
				t.Errorf("%s: %v is encoded as %v, %v; want %v", e, v.value, got, err, want)
			}
		}
	}
}
