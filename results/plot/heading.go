package plot

import (
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// heading is what stands over a chart.
type heading struct{ title, note string }

// draw draws it, each line cut where the canvas ends, and returns what is left below.
func (h heading) draw(c draw.Canvas) draw.Canvas {
	for _, part := range []struct {
		text  string
		style text.Style
	}{{h.title, sans(12)}, {h.note, sans(9)}} {
		if part.text == "" {
			continue
		}
		style := part.style
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		for _, line := range wrap(style, part.text, c.Size().X) {
			c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y}, line)
			c.Max.Y -= 1.25 * style.Font.Size
		}
		c.Max.Y -= style.Font.Size / 4
	}
	return c
}

// height is what it takes of a canvas of that width.
func (h heading) height(width vg.Length) (height vg.Length) {
	for _, part := range []struct {
		text  string
		style text.Style
	}{{h.title, sans(12)}, {h.note, sans(9)}} {
		if n := len(wrap(part.style, part.text, width)); n > 0 {
			height += (1.25*vg.Length(n) + 0.25) * part.style.Font.Size
		}
	}
	return height
}
