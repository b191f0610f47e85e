package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// arithmetic is what the expression of a stencil is written with, so that it is
// written once and serves vectors and single points.
type arithmetic interface {
	load(from Op) reg.VecVirtual
	add(a reg.VecVirtual, b Op) reg.VecVirtual
	mul(a reg.VecVirtual, b Op) reg.VecVirtual
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
