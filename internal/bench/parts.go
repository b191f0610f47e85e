package bench

import "github.com/halox/halox/domain"

// Cubes returns how n cubes, or with two axes squares, lie side by side, the parts along each
// axis: these get the prime factors of n, in turns from the last.
func Cubes(axes, n int) domain.Vec {
	parts := domain.Vec{1, 1, 1}
	for axis, factor := axes-1, 2; n > 1; {
		if n%factor != 0 {
			factor++
			continue
		}
		parts[axis] *= factor
		n /= factor
		axis = (axis + axes - 1) % axes
	}
	return parts
}

// Slabs returns n parts along the last axis.
func Slabs(axes, n int) domain.Vec {
	parts := domain.Vec{1, 1, 1}
	parts[axes-1] = n
	return parts
}
