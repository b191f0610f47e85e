package wording

import (
	"fmt"
	"math"
	"strconv"
)

// decimals is how many digits after the point show three digits of v in [1, 1000).
func decimals(v float64) int {
	switch {
	case v < 9.995:
		return 2
	case v < 99.95:
		return 1
	default:
		return 0
	}
}

// Digits shows a number to three digits, or all before the point.
func Digits(v float64) string {
	size := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case size < 1e-4 || size >= 1e9:
		return strconv.FormatFloat(v, 'e', 2, 64)
	case size < 1:
		return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(size))), 64)
	}
	return strconv.FormatFloat(v, 'f', decimals(size), 64)
}

// Micros shows a time in microseconds to three digits, or all before the point.
func Micros(us float64) string {
	return strconv.FormatFloat(us, 'f', decimals(us), 64)
}

// Percent shows a share from 0 to 1 as whole percents.
func Percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// Prefixed shows v to three digits with a decimal prefix, such as 1.23 Gpoint/s.
func Prefixed(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	step := 0
	for ; v >= 999.5 && step < len(prefixes)-1; step++ {
		v /= 1000
	}
	digits := 0
	if step > 0 {
		digits = decimals(v)
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + prefixes[step] + unit
}
