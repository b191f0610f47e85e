//go:build !amd64 || race || purego

package sums

// instructions is the set that a loop is written in: here there is one.
type instructions struct{}

// best returns the set to use on this processor.
func best() instructions { return instructions{} }

// usable returns every set that this processor can run.
func usable() []instructions { return []instructions{best()} }

func (instructions) String() string { return "go" }

func bin(_ instructions, l *lanes, terms []float64, unit float64) { l.bin(terms, unit) }
