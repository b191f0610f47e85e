//go:build !amd64 || race || purego

package sums

// assembly reports whether this processor supports the loops in assembly.
const assembly = false

func bin(_ bool, l *lanes, terms []float64, unit float64) { l.bin(terms, unit) }
