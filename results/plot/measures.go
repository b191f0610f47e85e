package plot

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ink is the pen of frames and ticks.
func ink() draw.LineStyle { return draw.LineStyle{Color: color.Black, Width: lineSize} }

// The measures of charts.
const (
	chartWidth          = 18 * vg.Centimeter
	chartHeight         = 12 * vg.Centimeter
	chartMargin         = vg.Length(6)
	chartGap            = vg.Length(8)
	legendSize          = vg.Length(9)
	legendInside        = 4 // curves that have their legend above them, inside the plot; of more it stands beside it
	legendInsideLetters = 48
)

// The measures of a heat map, in points. All of them are whole, and a point is a
// whole number of pixels, so that no edge of the map falls between two pixels.
const (
	pixelsPerPoint = 3

	mapLong  vg.Length = 336 // longer side of the map
	mapShort vg.Length = 42  // the shorter side is never below
	barWidth vg.Length = 14
	barGap   vg.Length = 18 // between the map, or its labels, and the bar
	holeSize vg.Length = 14 // patch that explains the colour of what is not finite
	holeGap  vg.Length = 8
	margin   vg.Length = 12
	tickSize vg.Length = 4
	textGap  vg.Length = 4
	lineSize vg.Length = 0.75
)
