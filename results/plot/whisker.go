package plot

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawWhisker draws an error bar with its ends.
func drawWhisker(c draw.Canvas, style draw.LineStyle, x, lo, hi vg.Length) {
	const end = 2.5
	c.StrokeLine2(style, x, lo, x, hi)
	c.StrokeLine2(style, x-end, lo, x+end, lo)
	c.StrokeLine2(style, x-end, hi, x+end, hi)
}
