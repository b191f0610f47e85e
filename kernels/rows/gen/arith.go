package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// arithmetic is what the expression of a stencil is written with, so that it is
// written once and serves whole vectors, masked vectors and single points.
type arithmetic interface {
	load(from Op) reg.VecVirtual
	add(a reg.VecVirtual, b Op) reg.VecVirtual
	mul(a reg.VecVirtual, b Op) reg.VecVirtual
}

// masked is a vector of which only some elements are in memory.
type masked struct {
	vector
	mask reg.OpmaskVirtual
}

func (m masked) load(from Op) reg.VecVirtual { return m.loadMasked(from, m.mask) }

func (m masked) add(a reg.VecVirtual, b Op) reg.VecVirtual { return m.vector.add(a, m.operand(b)) }

func (m masked) mul(a reg.VecVirtual, b Op) reg.VecVirtual { return m.vector.mul(a, m.operand(b)) }

// operand brings what is in memory into a register, through the mask.
func (m masked) operand(b Op) Op {
	if IsMem(b) {
		return m.load(b)
	}
	return b
}

// scalar is a single point. It uses the low element of the registers, so that
// a vector with one coefficient throughout serves as that coefficient.
type scalar struct{ elem element }

func (s scalar) load(from Op) reg.VecVirtual {
	out := XMM()
	if s.elem == float64s {
		VMOVSD(from, out)
	} else {
		VMOVSS(from, out)
	}
	return out
}

func (s scalar) store(to Op, value reg.VecVirtual) {
	if s.elem == float64s {
		VMOVSD(value, to)
	} else {
		VMOVSS(value, to)
	}
}

func (s scalar) add(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := XMM()
	if s.elem == float64s {
		VADDSD(b, low(a), out)
	} else {
		VADDSS(b, low(a), out)
	}
	return out
}

func (s scalar) mul(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := XMM()
	if s.elem == float64s {
		VMULSD(b, low(a), out)
	} else {
		VMULSS(b, low(a), out)
	}
	return out
}

func low(r reg.VecVirtual) Op { return r.AsX() }
