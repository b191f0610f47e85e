package plot

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/halox/halox/results/internal/wording"
)

// wrap breaks text into lines no wider than that, between words.
func wrap(style text.Style, s string, width vg.Length) (lines []string) {
	if s == "" {
		return nil
	}
	for paragraph := range strings.SplitSeq(s, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if longer := wording.Join(" ", line, word); line == "" || style.Width(longer) <= width {
				line = longer
				continue
			}
			lines, line = append(lines, line), word
		}
		lines = append(lines, line)
	}
	return lines
}

// longestWord is the width of the longest of the words that wrap keeps whole.
func longestWord(style text.Style, s string) (width vg.Length) {
	for word := range strings.FieldsSeq(s) {
		width = max(width, style.Width(word))
	}
	return width
}

func tickText() text.Style { return sans(10) }

func axisText() text.Style { return sans(11) }

func titleText() text.Style { return sans(13) }

func sans(size vg.Length) text.Style {
	face := font.Font{Typeface: "Liberation", Variant: "Sans"}
	return text.Style{
		Color:   color.Black,
		Font:    font.From(face, size),
		Handler: plot.DefaultTextHandler,
	}
}
