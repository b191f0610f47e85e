package nvrtc

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
)

var digits = regexp.MustCompile(`\d+`)

// compareNumbers orders paths by the numbers in them, so that version 12.10
// comes after 12.9, and a name with a version after the bare one.
func compareNumbers(a, b string) int {
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), cmp.Compare(a, b))
}

func numbers(path string) (all []int) {
	for _, d := range digits.FindAllString(path, -1) {
		n, _ := strconv.Atoi(d)
		all = append(all, n)
	}
	return all
}
