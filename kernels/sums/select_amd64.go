//go:build amd64 && !race && !purego

package sums

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// instructions is the set that a loop is written in.
type instructions int

const (
	goLoops instructions = iota
	avx2
	avx512
)

// best returns the set to use on this processor.
func best() instructions {
	switch {
	case cpu.X86.HasAVX512F:
		return avx512
	case cpu.X86.HasAVX2:
		return avx2
	}
	return goLoops
}

// usable returns every set that this processor can run.
func usable() (sets []instructions) {
	for set := range best() + 1 {
		sets = append(sets, set)
	}
	return sets
}

func (set instructions) String() string {
	return [...]string{goLoops: "go", avx2: "avx2", avx512: "avx512"}[set]
}

func bin(set instructions, l *lanes, terms []float64, unit float64) {
	if whole := len(terms) &^ (width - 1); whole > 0 && set != goLoops {
		if set == avx512 {
			binAVX512(&l[0][0], unsafe.SliceData(terms), whole, unit)
		} else {
			binAVX2(&l[0][0], unsafe.SliceData(terms), whole, unit)
		}
		terms = terms[whole:]
	}
	l.bin(terms, unit)
}
