package view

import (
	"fmt"
	"image/color"
	"math"
	"strings"
)

// Terminal draws a plane of a field for a terminal with 24-bit colors, in at most so many columns and lines: a line
// with the title and the range of the colors, and the map as half blocks, two pixels per character.
func Terminal(f *Field, o Options, columns, lines int) (string, error) {
	columns, lines = max(2, columns), max(2, lines)
	p, err := picture(f, o, columns, 2*(lines-1))
	if err != nil {
		return "", err
	}
	across, up := float64(p.NX)*p.DX, float64(p.NY)*p.DY
	scale := min(float64(columns)/across, float64(2*(lines-1))/up)
	width, rows := max(1, int(math.Round(across*scale))), max(1, int(math.Round(up*scale/2)))
	m, shown, err := p.Map(width, 2*rows)
	if err != nil {
		return "", err
	}
	title := []rune(fmt.Sprintf("%s, %s from %.4g to %.4g", p.Title, p.Label, shown.Lo, shown.Hi))
	var b strings.Builder
	b.WriteString(string(title[:min(len(title), columns)]) + "\n")
	for y := 0; y < 2*rows; y += 2 {
		for x := range width {
			for i, code := range []int{38, 48} { // upper and lower pixel
				c := color.RGBAModel.Convert(m.At(x, y+i)).(color.RGBA)
				fmt.Fprintf(&b, "\x1b[%d;2;%d;%d;%dm", code, c.R, c.G, c.B)
			}
			b.WriteString("▀")
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String(), nil
}
