package pack

import "math/bits"

// division is struct Division of tree.cu: what a division by a number that is known long before becomes, a product and
// a shift (Granlund and Montgomery 1994). With L = ceil(log2 d), n/d is n*magic >> (63+L) for all n below 2^63, and
// n*narrow >> (31+L) for all n below 2^31.
type division struct {
	magic  uint64 // 2^(63+L)/d, rounded up
	narrow uint32 // 2^(31+L)/d, rounded up; 0 if d is greater than 2^31
	shift  uint32 // L
}

// divisionBy returns how to divide by d, which is at least 1.
func divisionBy(d int64) division {
	divisor := uint64(d)
	shift := bits.Len64(divisor - 1)
	high, low := uint64(0), uint64(1)<<63
	if shift > 0 {
		high, low = 1<<(shift-1), 0
	}
	magic, rest := bits.Div64(high, low, divisor)
	if rest > 0 {
		magic++
	}
	q := division{magic: magic, shift: uint32(shift)}
	if d <= 1<<31 {
		q.narrow = uint32((magic-1)>>32 + 1)
	}
	return q
}

// of divides n, which is not negative.
func (q *division) of(n int64) int64 {
	high, _ := bits.Mul64(uint64(n)<<1, q.magic)
	return int64(high >> q.shift)
}

// words returns the constants as two numbers of a look-aside buffer, as they lie in memory on a machine that is little
// endian, as GPUs are.
func (q division) words() (magic, rest int64) {
	return int64(q.magic), int64(uint64(q.shift)<<32 | uint64(q.narrow))
}

// divisionOf is the inverse of words.
func divisionOf(magic, rest int64) division {
	return division{magic: uint64(magic), narrow: uint32(rest), shift: uint32(uint64(rest) >> 32)}
}
