package datatype

import (
	"fmt"
	"math/bits"
	"strings"
)

// A Signature stands for a sequence of predefined types: MPI's type signature. Two of them are equal, by ==, if their
// sequences are, however the types were built. What one side sends, another may receive if the signature sent is a prefix
// of the one received.
//
// It takes the same small memory for any type: the sequence is not kept but its length by predefined type, and the value of
// the polynomial with the sequence as coefficients at two points modulo 2^61-1. Two different sequences of n types agree in
// it with a probability of (n/2^61)^2. [Type.Runs] yields the sequence itself.
type Signature struct {
	counts [basics]int64
	points [2]point
}

// point is the polynomial of a sequence, and the power of its length, at one base.
type point struct{ value, power uint64 }

// The points where polynomials are evaluated: any two large numbers.
var bases = [2]uint64{0x0d3c_21bc_eccd_ad25, 0x1b8f_60fe_7b2a_8c63}

// modulus is the Mersenne prime 2^61-1.
const modulus = 1<<61 - 1

// signatureOf returns the signature of one predefined type.
func signatureOf(b Basic) Signature {
	var s Signature
	s.counts[b] = 1
	for i := range s.points {
		s.points[i] = point{value: uint64(b) + 1, power: bases[i]}
	}
	return s
}

// Elements returns the number of predefined types in the sequence.
func (s Signature) Elements() int64 {
	n := int64(0)
	for _, count := range s.counts {
		n += count
	}
	return n
}

// Count returns how many of one predefined type are in the sequence.
func (s Signature) Count(b Basic) int64 { return s.counts[b] }

// Then returns the signature of the sequence followed by another.
func (s Signature) Then(next Signature) Signature {
	if next.Elements() == 0 {
		return s
	}
	if s.Elements() == 0 {
		return next
	}
	for b := range s.counts {
		s.counts[b] += next.counts[b]
	}
	for i, p := range next.points {
		s.points[i] = s.points[i].then(p)
	}
	return s
}

// then returns the polynomial of one sequence followed by another.
func (p point) then(next point) point {
	return point{value: addMod(mulMod(p.value, next.power), next.value), power: mulMod(p.power, next.power)}
}

// Times returns the signature of n copies of the sequence, in O(log n). n must not be negative.
func (s Signature) Times(n int64) Signature {
	switch {
	case n == 0:
		return Signature{}
	case n == 1 || s.Elements() == 0:
		return s
	}
	half := s.Times(n / 2)
	whole := half.Then(half)
	if n%2 == 1 {
		whole = whole.Then(s)
	}
	return whole
}

// String returns how many of each predefined type are in the sequence, as 3 float64, 2 int32.
func (s Signature) String() string {
	var parts []string
	for b, count := range s.counts {
		if count > 0 {
			parts = append(parts, fmt.Sprint(count, " ", Basic(b)))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// mulMod returns a*b modulo 2^61-1.
func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return addMod(lo&modulus, hi<<3|lo>>61)
}

// addMod returns a+b modulo 2^61-1, for a and b at most that.
func addMod(a, b uint64) uint64 {
	sum := a + b
	sum = sum&modulus + sum>>61
	if sum >= modulus {
		sum -= modulus
	}
	return sum
}
