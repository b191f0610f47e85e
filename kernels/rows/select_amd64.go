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
	case cpu.X86.HasAVX512F:
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

// f64 is the address of points of which isDouble said that they are float64.
func f64[T Float](points []T) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(points))) }

// f32 is the address of points of which isDouble said that they are not.
func f32[T Float](points []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(points))) }

func star5[T Float](set instructions, dst, centre, south, north []T, b Band, alpha, beta T) {
	switch {
	case set == avx512 && isDouble[T]():
		star5F64AVX512(f64(dst), f64(centre), f64(south), f64(north),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(beta))
	case set == avx512:
		star5F32AVX512(f32(dst), f32(centre), f32(south), f32(north),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(beta))
	case set == avx2 && isDouble[T]():
		star5F64AVX2(f64(dst), f64(centre), f64(south), f64(north),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(beta))
	case set == avx2:
		star5F32AVX2(f32(dst), f32(centre), f32(south), f32(north),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(beta))
	default:
		star5Loop(dst, centre, south, north, b, alpha, beta)
	}
}

func star7[T Float](set instructions, dst, centre, south, north, below, above []T, b Band, alpha, beta T) {
	switch {
	case set == avx512 && isDouble[T]():
		star7F64AVX512(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(beta))
	case set == avx512:
		star7F32AVX512(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(beta))
	case set == avx2 && isDouble[T]():
		star7F64AVX2(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(beta))
	case set == avx2:
		star7F32AVX2(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(beta))
	default:
		star7Loop(dst, centre, south, north, below, above, b, alpha, beta)
	}
}

func star5Axes[T Float](set instructions, dst, centre, south, north []T, b Band, alpha, bx, by T) {
	switch {
	case set == avx512 && isDouble[T]():
		star5AxesF64AVX512(f64(dst), f64(centre), f64(south), f64(north),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(bx), float64(by))
	case set == avx512:
		star5AxesF32AVX512(f32(dst), f32(centre), f32(south), f32(north),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(bx), float32(by))
	case set == avx2 && isDouble[T]():
		star5AxesF64AVX2(f64(dst), f64(centre), f64(south), f64(north),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(bx), float64(by))
	case set == avx2:
		star5AxesF32AVX2(f32(dst), f32(centre), f32(south), f32(north),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(bx), float32(by))
	default:
		star5AxesLoop(dst, centre, south, north, b, alpha, bx, by)
	}
}

func star7Axes[T Float](set instructions, dst, centre, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	switch {
	case set == avx512 && isDouble[T]():
		star7AxesF64AVX512(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(bx), float64(by), float64(bz))
	case set == avx512:
		star7AxesF32AVX512(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(bx), float32(by), float32(bz))
	case set == avx2 && isDouble[T]():
		star7AxesF64AVX2(f64(dst), f64(centre), f64(south), f64(north), f64(below), f64(above),
			b.Points, b.Count, b.Pitch, float64(alpha), float64(bx), float64(by), float64(bz))
	case set == avx2:
		star7AxesF32AVX2(f32(dst), f32(centre), f32(south), f32(north), f32(below), f32(above),
			b.Points, b.Count, b.Pitch, float32(alpha), float32(bx), float32(by), float32(bz))
	default:
		star7AxesLoop(dst, centre, south, north, below, above, b, alpha, bx, by, bz)
	}
}

func accumulate[T Float](set instructions, l *lanes, new, old []T) {
	if whole := len(new) &^ (width - 1); whole > 0 && set != goLoops {
		first := &l.maxChange[0]
		switch {
		case set == avx512 && isDouble[T]():
			addF64AVX512(first, f64(new), f64(old), whole)
		case set == avx512:
			addF32AVX512(first, f32(new), f32(old), whole)
		case isDouble[T]():
			addF64AVX2(first, f64(new), f64(old), whole)
		default:
			addF32AVX2(first, f32(new), f32(old), whole)
		}
		new, old = new[whole:], old[whole:]
	}
	add(l, new, old)
}
