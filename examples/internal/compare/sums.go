package compare

import _ "embed"

// Sums is CUDA C++ that goes before that of an example: part and block_sum.
//
//go:embed sums.cuh
var Sums string

// Part is the twin of part: where the i-th of some parts of n things begins.
func Part(n, parts, i int64) int64 { return n * i / parts }

// BlockSum is the twin of block_sum: the sum of what each thread has, which it overwrites.
func BlockSum(threads []float64) (sum float64) {
	for warp := 0; warp < len(threads); warp += 32 {
		lanes := threads[warp:][:32]
		for d := 16; d > 0; d /= 2 {
			for i := range d {
				lanes[i] += lanes[i+d]
			}
		}
		if warp == 0 {
			sum = lanes[0]
		} else {
			sum += lanes[0]
		}
	}
	return sum
}
