// Package wording writes numbers and words as people read them: in tables, summaries and at the axes of plots.
package wording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
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

// most is how many characters of a text are shown.
const most = 200

// Short cuts a text after 200 characters.
func Short(text string) string {
	if len(text) > most {
		if runes := []rune(text[:min(len(text), 4*most)]); len(runes) > most {
			return string(runes[:most]) + "..."
		}
	}
	return text
}

// List joins the first 20 of some names with commas, and counts the others; of none it is a dash.
func List(names []string) string {
	const most = 20
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = Short(name)
	}
	return OrDash(strings.Join(shown, ", ")) + more
}

// Printable returns a text with a question mark for each rune that is not shown as such: controls, and those that turn
// the direction of writing. What is not UTF-8 becomes U+FFFD.
func Printable(text string) string { return printable(text, "") }

// printable keeps the runes in except.
func printable(text, except string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || strings.ContainsRune(except, r) {
			return r
		}
		return '?'
	}, text)
}

var jsonStrings = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// PrintableJSON returns valid JSON with all its strings, names of members too, as Printable returns them, except for
// line breaks and tabs, which stay.
func PrintableJSON(data []byte) []byte {
	return jsonStrings.ReplaceAllFunc(data, func(literal []byte) []byte {
		if !bytes.ContainsFunc(literal, func(r rune) bool { return r == '\\' || r < ' ' || r > '~' }) {
			return literal
		}
		var text string
		if json.Unmarshal(literal, &text) != nil {
			return literal
		}
		clean, _ := json.Marshal(printable(text, "\n\t")) // of a string: no error
		return clean
	})
}
