package stencil

import "math/bits"

// uniform returns a number in [0, 1) for a point: 53 bits of Philox4x32-10 (Salmon et al. 2011), with the point as the
// counter and the seed as the key. The number therefore does not depend on the decomposition of the grid.
func uniform(seed uint64, i, j, k int) float64 {
	at := [4]uint32{uint32(i), uint32(j), uint32(k), 0}
	return Uniform[float64](philox(at, [2]uint32{uint32(seed), uint32(seed >> 32)}))
}

// Uniform converts random bits to a number in [0, 1). It uses the first 53 bits, or the first 24 for float32.
func Uniform[T float32 | float64](w [4]uint32) T {
	if T(1)+0x1p-40 == 1 {
		return T(w[0]>>8) * 0x1p-24
	}
	return T(float64(uint64(w[0])>>5<<26|uint64(w[1])>>6) * 0x1p-53)
}

// philox is the block function of Philox4x32-10.
func philox(c [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		high0, low0 := bits.Mul32(0xD2511F53, c[0])
		high1, low1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0}
		key[0], key[1] = key[0]+0x9E3779B9, key[1]+0xBB67AE85
	}
	return c
}
