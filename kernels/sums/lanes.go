package sums

import "math"

//go:generate go run ./gen -pkg sums -out sums_amd64.s -stubs sums_amd64.go

// width is the number of lanes: one AVX-512 register of float64.
const width = 8

// nextBin is a unit of a bin in units of the bin below.
const nextBin = 1 << binBits

// lanes are the sums of the digits of every eighth term in each bin. The assembly knows the layout.
type lanes [binCount][width]float64

// bin adds the digits that terms have in each bin. unit is 1 over the unit of the highest bin. All that it
// computes is exact but for digits below the lowest bin.
func (l *lanes) bin(terms []float64, unit float64) {
	for i, x := range terms {
		lane := i % width
		x = float64(x * unit)
		digits := math.Trunc(x)
		l[2][lane] += digits
		x = float64((x - digits) * nextBin)
		digits = math.Trunc(x)
		l[1][lane] += digits
		l[0][lane] += math.Trunc(float64((x - digits) * nextBin))
	}
}
