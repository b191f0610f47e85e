package plot

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.TextStyle = sans(legendSize)
	l.Padding = vg.Points(3)
	l.Top, l.Left = true, true
	l.ThumbnailWidth = vg.Points(26)
	return l
}

// legendWidth is that of a legend with such names beside a plot, gaps included.
func legendWidth(names []string) vg.Length {
	widest := vg.Length(0)
	for _, name := range names {
		widest = max(widest, sans(legendSize).Width(name))
	}
	return widest + vg.Points(26) + 3*chartGap
}

// beside reports whether a legend of such names stands beside the plot.
func beside(names []string) bool {
	return len(names) > legendInside || slices.ContainsFunc(names, func(n string) bool { return len(n) > legendInsideLetters })
}

// widthFor returns a chart's, with more where a legend beside it takes much.
func widthFor(names []string) vg.Length {
	if !beside(names) {
		return chartWidth
	}
	return max(chartWidth, 11*vg.Centimeter+legendWidth(names))
}

// heightFor returns a chart's, with more where a legend beside it is longer than that.
func heightFor(names []string) vg.Length {
	if !beside(names) {
		return chartHeight
	}
	const heading = 2 * vg.Centimeter
	line := sans(legendSize).Height("M") + vg.Points(4.5)
	return max(chartHeight, heading+vg.Length(len(names))*line)
}

// drawBeside draws a legend in a stripe at the right and returns what is left.
func drawBeside(c draw.Canvas, l plot.Legend, names []string) draw.Canvas {
	width := legendWidth(names)
	stripe := draw.Crop(c, c.Size().X-width+chartGap, 0, 0, 0)
	l.Draw(stripe)
	return draw.Crop(c, 0, -width, 0, 0)
}
