package wording

import (
	"slices"
	"strconv"
	"strings"
)

// Times writes sizes as 4 x 3 x 2.
func Times(sizes []int) string {
	words := make([]string, len(sizes))
	for i, size := range sizes {
		words[i] = strconv.Itoa(size)
	}
	return strings.Join(words, " x ")
}

// Join is strings.Join without the empty words.
func Join(separator string, words ...string) string {
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return strings.Join(words, separator)
}

// Spaced writes the name of a label or a metric with spaces.
func Spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// Unit writes a unit as it stands after what is in it, such as " (us)"; "" for none.
func Unit(unit string) string {
	if unit == "" {
		return ""
	}
	return " (" + unit + ")"
}

// OrDash returns the text, or a dash in the place of none.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Count writes a number of things, "" for none.
func Count(n int, thing string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Uniform reports whether all texts are the same.
func Uniform(all []string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return s != all[0] })
}
