package wording

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// stranger stands in the place of what cannot be shown.
const stranger = '?'

// Printable returns a text with a question mark for each rune that is not shown as such: controls,
// and those that turn the direction of writing. What is no UTF-8 becomes U+FFFD.
func Printable(text string) string { return strings.Map(printable, text) }

func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return stranger
	}
	return r
}

// PrintableJSON returns valid JSON of which all strings, names of members too, are as Printable has
// them, but for line breaks and tabs, which stay.
func PrintableJSON(data []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(data))
	for quoted := false; len(data) > 0; {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == '"':
			quoted = !quoted
			out.WriteByte('"')
		case quoted && r == '\\':
			if r, n = escaped(data); strings.ContainsRune(`"\/nt`, rune(data[1])) {
				out.Write(data[:n])
			} else if clean := printable(r); clean == '"' || clean == '\\' {
				out.WriteByte('\\')
				out.WriteRune(clean)
			} else {
				out.WriteRune(clean)
			}
		case quoted:
			out.WriteRune(printable(r))
		default:
			out.Write(data[:n])
		}
		data = data[n:]
	}
	return out.Bytes()
}

// escaped returns the rune of the escape that valid JSON begins with, and its bytes.
func escaped(data []byte) (r rune, n int) {
	if data[1] != 'u' {
		return 0, 2 // a control, or what stays as it is
	}
	unit := func(at int) rune {
		u, _ := strconv.ParseUint(string(data[at:at+4]), 16, 16)
		return rune(u)
	}
	r = unit(2)
	if utf16.IsSurrogate(r) && len(data) >= 12 && data[6] == '\\' && data[7] == 'u' {
		if pair := utf16.DecodeRune(r, unit(8)); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}
