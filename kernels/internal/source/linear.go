package source

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/halox/halox/stencil"
)

// Sum is the weighted sum of a centre and of groups' parts, in the order that stencil.Stencil
// gives. The functions write weights and parts.
func Sum(s stencil.Stencil, weight func(float64) string, centre string, part func(stencil.Part) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s * %s", weight(s.Centre), centre)
	for _, g := range s.Groups {
		var parts []string
		for _, p := range g.Parts {
			parts = append(parts, part(p))
		}
		fmt.Fprintf(&b, "\n\t    + %s * (%s)", weight(g.Weight), strings.Join(parts, " + "))
	}
	return b.String()
}

// Part returns what writes the sum of a part's points, each by a format of its offset.
func Part(format string) func(stencil.Part) string {
	return func(p stencil.Part) string {
		terms := make([]string, len(p))
		for i, o := range p {
			terms[i] = fmt.Sprintf(format, o[0], o[1], o[2])
		}
		return "(" + strings.Join(terms, " + ") + ")"
	}
}

// Weight returns what writes a weight exactly, as it is in a type of so many bytes, 4 or 8, that
// the source calls name.
func Weight(name string, bytes int) func(float64) string {
	return func(w float64) string {
		if bytes == 4 {
			w = float64(float32(w))
		}
		return fmt.Sprintf("(%s)%s", name, strconv.FormatFloat(w, 'x', -1, 64))
	}
}
