package nvrtc

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var digits = regexp.MustCompile(`\d+`)

// compareVersions orders paths of libraries by the version in the file's name,
// then by those in the folders, the outermost first: 12.10 comes after 12.9,
// and a name with a version after the bare one.
func compareVersions(a, b string) int {
	return cmp.Or(
		compareNumbers(filepath.Base(a), filepath.Base(b)),
		slices.CompareFunc(folders(a), folders(b), compareNumbers),
		cmp.Compare(a, b),
	)
}

// folders are the names of the folders that a file lies in.
func folders(path string) []string {
	return strings.Split(filepath.ToSlash(filepath.Dir(path)), "/")
}

// compareNumbers compares names by the numbers in them.
func compareNumbers(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(name string) (all []int) {
	for _, d := range digits.FindAllString(name, -1) {
		n, _ := strconv.Atoi(d)
		all = append(all, n)
	}
	return all
}
