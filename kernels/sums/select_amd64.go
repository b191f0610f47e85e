//go:build amd64 && !race && !purego

package sums

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// assembly reports whether this processor supports the loops in assembly.
var assembly = cpu.X86.HasAVX2

func bin(assembly bool, l *lanes, terms []float64, unit float64) {
	if whole := len(terms) &^ (width - 1); whole > 0 && assembly {
		binDigits(&l[0][0], unsafe.SliceData(terms), whole, unit)
		terms = terms[whole:]
	}
	l.bin(terms, unit)
}
