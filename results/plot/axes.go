package plot

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// widen gives a logarithmic axis with one number on it, or nearly so, a range.
func widen(a *plot.Axis) {
	if a.Max < 1.01*a.Min {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}

// pad gives a linear axis with one number on it a range.
func pad(a *plot.Axis) {
	if a.Max <= a.Min {
		a.Min, a.Max = min(0, a.Min-1), a.Max+1
	}
}

const quarterTurn = math.Pi / 2

// newPlot returns a plot with the fonts of a chart, and no title.
func newPlot(xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text = xLabel
	p.Y.Label.Text = yLabel
	p.Legend = newLegend()
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
	}
	return p
}

// drawPlot draws a plot. The label of Y is drawn here: gonum's plot would leave
// half its length free above a logarithmic axis.
func drawPlot(p *plot.Plot, c draw.Canvas) {
	label := p.Y.Label
	p.Y.Label.Text = ""
	left := label.TextStyle.Height(label.Text) + chartGap
	inner := draw.Crop(c, left, 0, 0, 0)
	if _, bytes := p.X.Tick.Marker.(binaries); bytes {
		length := p.DataCanvas(inner).Size().X
		p.X.Tick.Marker = binaries{func(label string) float64 { return float64(p.X.Tick.Label.Width(label) / length) }}
	}
	p.Draw(inner)
	style := label.TextStyle
	style.Rotation += quarterTurn
	data := p.DataCanvas(inner)
	c.FillText(style, vg.Point{X: c.Min.X + left - chartGap, Y: data.Center().Y}, label.Text)
}
