package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// instructions is a vector instruction set, as the names of functions spell it.
type instructions string

const (
	avx512 instructions = "AVX512"
	avx2   instructions = "AVX2"
)

// element is the type of a grid's points.
type element struct {
	name string // as Go spells it
	tag  string // as the names of functions spell it
	size int    // bytes
}

var (
	float64s = element{"float64", "F64", 8}
	float32s = element{"float32", "F32", 4}
)

// vector writes instructions on vectors of one element type in one set. Its
// methods return a fresh register with the result.
type vector struct {
	set  instructions
	elem element
}

// bytes is the size of a vector.
func (v vector) bytes() int {
	if v.set == avx512 {
		return 64
	}
	return 32
}

// points is the number of elements in a vector.
func (v vector) points() int { return v.bytes() / v.elem.size }

func (v vector) register() reg.VecVirtual {
	if v.set == avx512 {
		return ZMM()
	}
	return YMM()
}

func (v vector) double() bool { return v.elem == float64s }

// broadcast fills a vector with the scalar argument of that name.
func (v vector) broadcast(name string) reg.VecVirtual {
	address, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	out := v.register()
	if v.double() {
		VBROADCASTSD(address.Addr, out)
	} else {
		VBROADCASTSS(address.Addr, out)
	}
	return out
}

func (v vector) load(from Op) reg.VecVirtual {
	out := v.register()
	if v.double() {
		VMOVUPD(from, out)
	} else {
		VMOVUPS(from, out)
	}
	return out
}

func (v vector) store(to Op, value reg.VecVirtual) {
	if v.double() {
		VMOVUPD(value, to)
	} else {
		VMOVUPS(value, to)
	}
}

// add returns a + b, where b may be in memory.
func (v vector) add(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := v.register()
	if v.double() {
		VADDPD(b, a, out)
	} else {
		VADDPS(b, a, out)
	}
	return out
}

// mul returns a * b, where b may be in memory.
func (v vector) mul(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := v.register()
	if v.double() {
		VMULPD(b, a, out)
	} else {
		VMULPS(b, a, out)
	}
	return out
}
