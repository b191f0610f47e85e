//go:build amd64 && !race && !purego

package rows

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// assembly reports whether this processor supports the loops in assembly.
var assembly = cpu.X86.HasAVX2

// isDouble reports whether T is float64. The compiler evaluates it.
func isDouble[T Float]() bool {
	var zero T
	return unsafe.Sizeof(zero) == 8
}

// f64 returns the address of points if isDouble.
func f64[T Float](points []T) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(points))) }

// f32 returns the address of points if not isDouble.
func f32[T Float](points []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(points))) }

func star5[T Float](assembly bool, dst, center, south, north []T, b Band, alpha, beta T) {
	switch {
	case assembly && isDouble[T]():
		star5F64(f64(dst), f64(center), f64(south), f64(north),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(beta))
	case assembly:
		star5F32(f32(dst), f32(center), f32(south), f32(north),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(beta))
	default:
		star5Loop(dst, center, south, north, b, alpha, beta)
	}
}

func star7[T Float](assembly bool, dst, center, south, north, below, above []T, b Band, alpha, beta T) {
	switch {
	case assembly && isDouble[T]():
		star7F64(f64(dst), f64(center), f64(south), f64(north), f64(below), f64(above),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(beta))
	case assembly:
		star7F32(f32(dst), f32(center), f32(south), f32(north), f32(below), f32(above),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(beta))
	default:
		star7Loop(dst, center, south, north, below, above, b, alpha, beta)
	}
}

func star5Axes[T Float](assembly bool, dst, center, south, north []T, b Band, alpha, bx, by T) {
	switch {
	case assembly && isDouble[T]():
		star5AxesF64(f64(dst), f64(center), f64(south), f64(north),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(bx), float64(by))
	case assembly:
		star5AxesF32(f32(dst), f32(center), f32(south), f32(north),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(bx), float32(by))
	default:
		star5AxesLoop(dst, center, south, north, b, alpha, bx, by)
	}
}

func star7Axes[T Float](assembly bool, dst, center, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	switch {
	case assembly && isDouble[T]():
		star7AxesF64(f64(dst), f64(center), f64(south), f64(north), f64(below), f64(above),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(bx), float64(by), float64(bz))
	case assembly:
		star7AxesF32(f32(dst), f32(center), f32(south), f32(north), f32(below), f32(above),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(bx), float32(by), float32(bz))
	default:
		star7AxesLoop(dst, center, south, north, below, above, b, alpha, bx, by, bz)
	}
}

func accumulate[T Float](assembly bool, l *lanes, new, old []T) {
	if whole := len(new) &^ (width - 1); whole > 0 && assembly {
		first := &l.maxChange[0]
		if isDouble[T]() {
			addF64(first, f64(new), f64(old), whole)
		} else {
			addF32(first, f32(new), f32(old), whole)
		}
		new, old = new[whole:], old[whole:]
	}
	add(l, new, old)
}
