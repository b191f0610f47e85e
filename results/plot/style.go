package plot

import (
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results/internal/wording"
)

// The dimensions of charts. Width and height are those of a plot with its axes.
const (
	chartWidth     = 14 * vg.Centimeter
	chartHeight    = 10 * vg.Centimeter
	chartMargin    = vg.Length(6)
	chartGap       = vg.Length(8)
	textGap        = vg.Length(4)
	legendSize     = vg.Length(9)
	legendLine     = vg.Length(15)
	pixelsPerPoint = 2
)

// palette is the colors of Okabe and Ito (2008), which color-blind readers can distinguish too, with brown in place of
// yellow, and gray.
var palette = [...]color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x7a, 0x4a, 0x1e, 0xff}, {0x00, 0x00, 0x00, 0xff},
	{0x80, 0x80, 0x80, 0xff},
}

// schemeHues are the colors of schemes in all charts.
var schemeHues = map[string]int{
	"two-stream": 0, "assisted": 1, "graph": 2, "blocked": 3, "fused": 4, "ranks": 5, "baseline": 6, "resident": 7,
}

// gray is the index of the color of bounds.
const gray = len(palette) - 1

// notFinite is a gray that the colors of values never have.
var notFinite = color.RGBA{R: 0x9a, G: 0x9a, B: 0x9a, A: 0xff}

// widen gives a logarithmic axis with (nearly) one number a range.
func widen(a *plot.Axis) {
	if a.Max <= 1.01*a.Min {
		a.Min, a.Max = max(a.Min/2, math.SmallestNonzeroFloat64), min(2*a.Max, math.MaxFloat64)
	}
}

// margin lengthens an axis at its upper end, and also at its lower one, so that marks are inside of the frame.
func margin(a *plot.Axis, logarithmic, lower bool) {
	const share, denormal = 0.03, 1e-300
	lo, hi := a.Min, a.Max
	if hi-lo < denormal {
		return
	}
	if logarithmic {
		lo, hi = math.Log(lo), math.Log(hi)
	}
	more := share * (hi - lo)
	if lower {
		lo -= more
	}
	hi += more
	if logarithmic {
		lo, hi = max(math.Exp(lo), denormal), min(math.Exp(hi), math.MaxFloat64)
	}
	if !math.IsInf(lo, 0) && !math.IsInf(hi, 0) {
		a.Min, a.Max = lo, hi
	}
}

// pad gives a linear axis with one number a range.
func pad(a *plot.Axis) {
	if a.Max <= a.Min {
		by := max(1, math.Abs(a.Max)/2)
		a.Min, a.Max = min(0, a.Min-by), min(a.Max+by, math.MaxFloat64)
	}
}

// newPlot returns a plot with the fonts of a chart, and no title.
func newPlot(xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text = xLabel
	p.Y.Label.Text = yLabel
	p.X.Padding, p.Y.Padding = 0, 0
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
	}
	return p
}

// mapCanvas returns the part of a canvas where [drawPlot] draws the data of a plot.
func mapCanvas(p *plot.Plot, c draw.Canvas) draw.Canvas {
	label := p.Y.Label.Text
	p.Y.Label.Text = ""
	data := p.DataCanvas(draw.Crop(c, labelRoom(p, label), 0, 0, 0))
	p.Y.Label.Text = label
	return data
}

// labelRoom is the width that the label of Y takes.
func labelRoom(p *plot.Plot, label string) vg.Length {
	if label == "" {
		return 0
	}
	return p.Y.Label.TextStyle.Height(label) + chartGap
}

// drawPlot draws a plot. The label of Y is drawn here: gonum's plot would leave half its length free above a
// logarithmic axis.
func drawPlot(p *plot.Plot, c draw.Canvas) {
	label := p.Y.Label
	p.Y.Label.Text = ""
	left := labelRoom(p, label.Text)
	inner := draw.Crop(c, left, 0, 0, 0)
	p.Draw(inner)
	p.Y.Label = label
	style := label.TextStyle
	style.Rotation += math.Pi / 2
	data := p.DataCanvas(inner)
	c.FillText(style, vg.Point{X: c.Min.X + left - chartGap, Y: data.Center().Y}, label.Text)
}

// wrap breaks text into lines of at most width, between words.
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

// longestWord is the width of the longest word, which wrap does not break.
func longestWord(style text.Style, s string) (width vg.Length) {
	for word := range strings.FieldsSeq(s) {
		width = max(width, style.Width(word))
	}
	return width
}

// sans is the font of charts in a size.
func sans(size vg.Length) text.Style {
	face := font.Font{Typeface: "Liberation", Variant: "Sans"}
	return text.Style{
		Color:   color.Black,
		Font:    font.From(face, size),
		Handler: plot.DefaultTextHandler,
	}
}

// heading is the text above a chart.
type heading struct{ title, note string }

// each calls do for its lines on a canvas of a width, and returns their height.
func (h heading) each(width vg.Length, do func(style text.Style, from vg.Length, line string)) (height vg.Length) {
	for i, part := range []string{h.title, h.note} {
		style := sans([]vg.Length{12, 9}[i])
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		for _, line := range wrap(style, part, width) {
			do(style, height, line)
			height += 1.25 * style.Font.Size
		}
		if part != "" {
			height += style.Font.Size / 4
		}
	}
	return height
}

// draw draws the heading and returns the space below.
func (h heading) draw(c draw.Canvas) draw.Canvas {
	c.Max.Y -= h.each(c.Size().X, func(style text.Style, from vg.Length, line string) {
		c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y - from}, line)
	})
	return c
}

// A legend is at the right of a plot. Without names it takes no space.
type legend struct {
	plot.Legend
	names []string
}

func newLegend() *legend {
	l := &legend{Legend: plot.NewLegend()}
	l.TextStyle = sans(legendSize)
	l.Padding = vg.Points(3)
	l.Top, l.Left = true, true
	l.ThumbnailWidth = vg.Points(26)
	return l
}

// add adds an entry unless it has no name.
func (l *legend) add(name string, of ...plot.Thumbnailer) {
	if name != "" {
		l.Add(name, of...)
		l.names = append(l.names, name)
	}
}

// width returns the width including gaps.
func (l *legend) width() (widest vg.Length) {
	for _, name := range l.names {
		widest = max(widest, l.TextStyle.Width(name)+l.ThumbnailWidth+3*chartGap)
	}
	return widest
}

// draw draws the legend and returns the space left.
func (l *legend) draw(c draw.Canvas) draw.Canvas {
	width := l.width()
	l.Draw(draw.Crop(c, c.Size().X-width+chartGap, 0, 0, 0))
	return draw.Crop(c, 0, -width, 0, 0)
}

// A sheet is a chart with its size.
type sheet struct {
	width, height vg.Length
	draw          func(draw.Canvas)
	pixels        int    // width of a picture; 0 for the default
	colors        string // scale of colors, one of ColorMaps; "" if the chart has none
}

// paint draws the sheet on white.
func (s sheet) paint(canvas vg.CanvasSizer) {
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	s.draw(draw.Crop(page, chartMargin, -chartMargin, chartMargin, -chartMargin))
}

// newSheet lays out a drawing of a size below a heading and left of a legend.
func newSheet(h heading, l *legend, width, height vg.Length, data func(draw.Canvas)) sheet {
	width, height = width+l.width(), max(height, vg.Length(len(l.names))*legendLine)
	height += h.each(width, func(text.Style, vg.Length, string) {})
	paint := func(c draw.Canvas) { data(l.draw(h.draw(c))) }
	return sheet{width: width + 2*chartMargin, height: height + 2*chartMargin, draw: paint}
}

// centered returns a style whose texts are centered at their point.
func centered(style text.Style) text.Style {
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	return style
}
