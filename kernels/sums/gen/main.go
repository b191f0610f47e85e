// Command gen writes the AVX2 assembly of package sums, and the Go declarations that go with it, with avo. Run it by
// go generate in the package's folder.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	lanes = 8  // of package sums
	bins  = 3  // of a sum
	bytes = 32 // of a register
	parts = lanes * 8 / bytes
)

func main() {
	// The same condition stands in select_amd64.go, and its opposite in select_go.go.
	ConstraintExpr("amd64,!race,!purego")
	TEXT("binDigits", NOSPLIT, "func(lanes *float64, terms *float64, n int, unit float64)")
	Pragma("noescape")
	Doc(fmt.Sprintf(
		"binDigits adds the digits of n terms in each bin to its lanes, n being a positive multiple of %d.", lanes,
	))
	l := Load(Param("lanes"), GP64())
	terms := Load(Param("terms"), GP64())
	n := Load(Param("n"), GP64())
	unit, nextBin := YMM(), YMM()
	address, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(address.Addr, unit)
	bits, low := GP64(), XMM()
	MOVQ(U64(0x4270000000000000), bits) // 2^40
	MOVQ(bits, low)
	VBROADCASTSD(low, nextBin)

	at := func(bin, part int) Mem { return Mem{Base: l, Disp: bin*lanes*8 + part*bytes} }
	var sums [bins][]reg.VecVirtual
	for bin := range sums {
		for part := range parts {
			sum := YMM()
			VMOVUPD(at(bin, part), sum)
			sums[bin] = append(sums[bin], sum)
		}
	}
	Label("group")
	for part := range parts {
		x, digits := YMM(), YMM()
		VMULPD(Mem{Base: terms, Disp: part * bytes}, unit, x)
		for bin := bins - 1; bin >= 0; bin-- {
			const towardsZero = 3
			VROUNDPD(U8(towardsZero), x, digits)
			VADDPD(digits, sums[bin][part], sums[bin][part])
			if bin > 0 {
				VSUBPD(digits, x, x)
				VMULPD(nextBin, x, x)
			}
		}
	}
	ADDQ(I32(lanes*8), terms)
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("group"))
	for bin := range sums {
		for part, sum := range sums[bin] {
			VMOVUPD(sum, at(bin, part))
		}
	}
	VZEROUPPER()
	RET()
	Generate()
}
