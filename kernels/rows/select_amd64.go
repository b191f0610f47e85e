//go:build amd64 && !race && !purego

package rows

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// instructions is the set that a loop is written in.
type instructions int

const (
	goLoops instructions = iota
	avx2
	avx512
)

// best returns the set to use on this processor.
func best() instructions {
	switch {
	// BZHI, for the mask of a row's end, is of BMI2.
	case cpu.X86.HasAVX512F && cpu.X86.HasBMI2:
		return avx512
	case cpu.X86.HasAVX2:
		return avx2
	}
	return goLoops
}

// usable returns every set that this processor can run.
func usable() []instructions {
	var sets []instructions
	for set := range best() + 1 {
		sets = append(sets, set)
	}
	return sets
}

func (set instructions) String() string {
	return [...]string{goLoops: "go", avx2: "avx2", avx512: "avx512"}[set]
}

// isDouble reports whether T is float64. The compiler knows the answer.
func isDouble[T Float]() bool {
	var zero T
	return unsafe.Sizeof(zero) == 8
}

// f64 is the address of a row of which isDouble said that it is of float64.
func f64[T Float](row *T) *float64 { return (*float64)(unsafe.Pointer(row)) }

// f32 is the address of a row of which isDouble said that it is not.
func f32[T Float](row *T) *float32 { return (*float32)(unsafe.Pointer(row)) }

func star5[T Float](set instructions, dst, centre, south, north *T, n int, alpha, beta T) {
	switch {
	case set == avx512 && isDouble[T]():
		star5F64AVX512(f64(dst), f64(centre), f64(south), f64(north), n, float64(alpha), float64(beta))
	case set == avx512:
		star5F32AVX512(f32(dst), f32(centre), f32(south), f32(north), n, float32(alpha), float32(beta))
	case set == avx2 && isDouble[T]():
		star5F64AVX2(f64(dst), f64(centre), f64(south), f64(north), n, float64(alpha), float64(beta))
	case set == avx2:
		star5F32AVX2(f32(dst), f32(centre), f32(south), f32(north), n, float32(alpha), float32(beta))
	default:
		star5Loop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), alpha, beta)
	}
}

func star7[T Float](set instructions, dst, centre, south, north, below, above *T, n int, alpha, beta T) {
	switch {
	case set == avx512 && isDouble[T]():
		star7F64AVX512(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			n, float64(alpha), float64(beta))
	case set == avx512:
		star7F32AVX512(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			n, float32(alpha), float32(beta))
	case set == avx2 && isDouble[T]():
		star7F64AVX2(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			n, float64(alpha), float64(beta))
	case set == avx2:
		star7F32AVX2(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			n, float32(alpha), float32(beta))
	default:
		star7Loop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), points(below, n), points(above, n), alpha, beta)
	}
}

func star5Axes[T Float](set instructions, dst, centre, south, north *T, n int, alpha, bx, by T) {
	switch {
	case set == avx512 && isDouble[T]():
		star5AxesF64AVX512(f64(dst), f64(centre), f64(south), f64(north),
			n, float64(alpha), float64(bx), float64(by))
	case set == avx512:
		star5AxesF32AVX512(f32(dst), f32(centre), f32(south), f32(north),
			n, float32(alpha), float32(bx), float32(by))
	case set == avx2 && isDouble[T]():
		star5AxesF64AVX2(f64(dst), f64(centre), f64(south), f64(north),
			n, float64(alpha), float64(bx), float64(by))
	case set == avx2:
		star5AxesF32AVX2(f32(dst), f32(centre), f32(south), f32(north),
			n, float32(alpha), float32(bx), float32(by))
	default:
		star5AxesLoop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), alpha, bx, by)
	}
}

func star7Axes[T Float](set instructions, dst, centre, south, north, below, above *T, n int, alpha, bx, by, bz T) {
	switch {
	case set == avx512 && isDouble[T]():
		star7AxesF64AVX512(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			n, float64(alpha), float64(bx), float64(by), float64(bz))
	case set == avx512:
		star7AxesF32AVX512(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			n, float32(alpha), float32(bx), float32(by), float32(bz))
	case set == avx2 && isDouble[T]():
		star7AxesF64AVX2(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			n, float64(alpha), float64(bx), float64(by), float64(bz))
	case set == avx2:
		star7AxesF32AVX2(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			n, float32(alpha), float32(bx), float32(by), float32(bz))
	default:
		star7AxesLoop(points(dst, n), points(centre, n+2), points(south, n), points(north, n), points(below, n), points(above, n), alpha, bx, by, bz)
	}
}

func accumulate[T Float](set instructions, l *lanes, new, old []T) {
	if whole := len(new) &^ (width - 1); whole > 0 && set != goLoops {
		first := &l.maxChange[0]
		switch {
		case set == avx512 && isDouble[T]():
			addF64AVX512(first, f64(&new[0]), f64(&old[0]), whole)
		case set == avx512:
			addF32AVX512(first, f32(&new[0]), f32(&old[0]), whole)
		case isDouble[T]():
			addF64AVX2(first, f64(&new[0]), f64(&old[0]), whole)
		default:
			addF32AVX2(first, f32(&new[0]), f32(&old[0]), whole)
		}
		new, old = new[whole:], old[whole:]
	}
	add(l, new, old)
}
