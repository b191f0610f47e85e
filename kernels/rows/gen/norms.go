package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is the number of lanes of package rows, all of them float64.
const lanes = 8

// part is the part of the lanes that one register holds: all or half of them.
type part struct {
	maxChange, sumChange2, max, sum2 reg.VecVirtual
}

// writeNorms writes the function that puts a row's points into the lanes. It
// does whole groups of them only: package rows adds what is left in Go.
func writeNorms(e vector) {
	name := "add" + e.elem.tag + string(e.set)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(lanes *float64, new, old *%s, n int)", e.elem.name))
	Pragma("noescape")
	Doc(name + " puts n points into the lanes, n being a positive multiple of 8.")

	v := vector{e.set, float64s}
	l := Load(Param("lanes"), GP64())
	next := Load(Param("new"), GP64())
	old := Load(Param("old"), GP64())
	n := Load(Param("n"), GP64())
	magnitude := v.magnitude()

	parts := make([]part, lanes/v.points())
	for i := range parts {
		at := func(field int) Mem { return Mem{Base: l, Disp: field*lanes*8 + i*v.bytes()} }
		parts[i] = part{v.load(at(0)), v.load(at(1)), v.load(at(2)), v.load(at(3))}
	}

	Label("group")
	for i, p := range parts {
		offset := i * v.points() * e.elem.size
		value := v.widen(Mem{Base: next, Disp: offset}, e.elem)
		change := v.sub(value, v.widen(Mem{Base: old, Disp: offset}, e.elem))
		v.accumulate(p.maxChange, p.sumChange2, change, magnitude)
		v.accumulate(p.max, p.sum2, value, magnitude)
	}
	ADDQ(I32(lanes*e.elem.size), next)
	ADDQ(I32(lanes*e.elem.size), old)
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("group"))

	for i, p := range parts {
		for field, value := range []reg.VecVirtual{p.maxChange, p.sumChange2, p.max, p.sum2} {
			v.store(Mem{Base: l, Disp: field*lanes*8 + i*v.bytes()}, value)
		}
	}
	VZEROUPPER()
	RET()
}

// accumulate writes maximum = max(maximum, |x|) and sum += x*x.
func (v vector) accumulate(maximum, sum, x, magnitude reg.VecVirtual) {
	VADDPD(v.mul(x, x), sum, sum)
	size := v.register()
	if v.set == avx512 {
		VPANDQ(magnitude, x, size) // VANDPD on 64 bytes would ask for AVX512DQ
	} else {
		VANDPD(magnitude, x, size)
	}
	// Where one is NaN the instruction gives its second source, which is the
	// first operand here: what the comparison in Go does.
	VMAXPD(maximum, size, maximum)
}

// magnitude is a vector of all bits but the sign.
func (v vector) magnitude() reg.VecVirtual {
	bits := GP64()
	MOVQ(U64(1<<63-1), bits)
	x := XMM()
	MOVQ(bits, x)
	out := v.register()
	VBROADCASTSD(x, out)
	return out
}

// widen loads a vector of float64 from elements that may be narrower.
func (v vector) widen(from Mem, e element) reg.VecVirtual {
	if e == float64s {
		return v.load(from)
	}
	out := v.register()
	VCVTPS2PD(from, out)
	return out
}

// sub returns a - b.
func (v vector) sub(a, b reg.VecVirtual) reg.VecVirtual {
	out := v.register()
	VSUBPD(b, a, out)
	return out
}
