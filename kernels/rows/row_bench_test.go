package rows

import (
	"fmt"
	"testing"
	"unsafe"
)

// BenchmarkStar7 times one row that stays in the first-level cache: the cost
// of the arithmetic and of a call, without that of memory.
func BenchmarkStar7(b *testing.B) {
	benchmarkRow(b, "float64", func(assembly bool, dst, in []float64) {
		star7(assembly, dst, in, in, in, in, in, Band{len(dst), 1, len(dst)}, 0.1, 0.15)
	})
	benchmarkRow(b, "float32", func(assembly bool, dst, in []float32) {
		star7(assembly, dst, in, in, in, in, in, Band{len(dst), 1, len(dst)}, 0.1, 0.15)
	})
}

// BenchmarkAddRow does the same for the norms.
func BenchmarkAddRow(b *testing.B) {
	var l lanes
	benchmarkRow(b, "float64", func(assembly bool, dst, in []float64) { accumulate(assembly, &l, dst, in[:len(dst)]) })
	benchmarkRow(b, "float32", func(assembly bool, dst, in []float32) { accumulate(assembly, &l, dst, in[:len(dst)]) })
}

func benchmarkRow[T Float](b *testing.B, kind string, row func(assembly bool, dst, in []T)) {
	for _, assembly := range variants() {
		for _, n := range []int{1, 7, 64, 256, 263} {
			b.Run(fmt.Sprintf("assembly=%v/type=%s/n=%d", assembly, kind, n), func(b *testing.B) {
				dst, in := make([]T, n), make([]T, n+2)
				b.SetBytes(int64(n) * int64(unsafe.Sizeof(T(0))))
				for b.Loop() {
					row(assembly, dst, in)
				}
			})
		}
	}
}
