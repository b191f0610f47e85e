package plot

import (
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results/internal/wording"
)

// The measures of charts.
const (
	chartWidth          = 18 * vg.Centimeter
	chartHeight         = 12 * vg.Centimeter
	chartMargin         = vg.Length(6)
	chartGap            = vg.Length(8)
	textGap             = vg.Length(4)
	legendSize          = vg.Length(9)
	legendInside        = 4 // most curves with a legend inside the plot; of more it is to the right of the plot
	legendInsideLetters = 48
	pixelsPerPoint      = 3
)

// colours are those of Okabe and Ito (2008), which colour-blind readers can
// tell apart too, and grey.
var colours = [...]color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x00, 0x00, 0xff},
	{0x80, 0x80, 0x80, 0xff},
}

// grey is the colour of bounds.
const grey = len(colours) - 1

// notFinite is a grey, which the colours of values never are.
var notFinite = color.RGBA{R: 0x9a, G: 0x9a, B: 0x9a, A: 0xff}

// viridis is a scale of n colours from dark violet to yellow whose lightness
// grows evenly, also to a colour-blind eye and in print without colours.
func viridis(n int) []color.RGBA {
	scale, err := moreland.NewLuminance([]color.Color{
		rgb(0x440154), rgb(0x481a6c), rgb(0x472f7d), rgb(0x414487),
		rgb(0x39568c), rgb(0x31688e), rgb(0x2a788e), rgb(0x23888e),
		rgb(0x1f988b), rgb(0x22a884), rgb(0x35b779), rgb(0x54c568),
		rgb(0x7ad151), rgb(0xa5db36), rgb(0xd2e21b), rgb(0xfde725),
	})
	if err != nil {
		panic(err) // the colours above grow in lightness
	}
	scale.SetMax(1)
	colors := make([]color.RGBA, n)
	for i := range colors {
		c, err := scale.At(float64(i) / float64(n-1))
		if err != nil {
			panic(err) // the fraction is in [0, 1]
		}
		colors[i] = color.RGBAModel.Convert(c).(color.RGBA)
	}
	return colors
}

func rgb(code uint32) color.Color {
	return color.RGBA{R: uint8(code >> 16), G: uint8(code >> 8), B: uint8(code), A: 0xff}
}

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

// mapCanvas returns where [drawPlot] draws the data of a plot on a canvas.
func mapCanvas(p *plot.Plot, c draw.Canvas) draw.Canvas {
	label := p.Y.Label.Text
	p.Y.Label.Text = ""
	data := p.DataCanvas(draw.Crop(c, labelRoom(p, label), 0, 0, 0))
	p.Y.Label.Text = label
	return data
}

// labelRoom is what the label of Y takes of the width of a plot.
func labelRoom(p *plot.Plot, label string) vg.Length {
	if label == "" {
		return 0
	}
	return p.Y.Label.TextStyle.Height(label) + chartGap
}

// drawPlot draws a plot. The label of Y is drawn here: gonum's plot would leave
// half its length free above a logarithmic axis.
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

// sans is the font of charts in a size.
func sans(size vg.Length) text.Style {
	face := font.Font{Typeface: "Liberation", Variant: "Sans"}
	return text.Style{
		Color:   color.Black,
		Font:    font.From(face, size),
		Handler: plot.DefaultTextHandler,
	}
}

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
	return len(names) > legendInside ||
		slices.ContainsFunc(names, func(n string) bool { return len(n) > legendInsideLetters })
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

// centered returns a style whose texts are centered at their point.
func centered(style text.Style) text.Style {
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	return style
}

// stroke draws the edges of a rectangle.
func stroke(c draw.Canvas, r vg.Rectangle, style draw.LineStyle) {
	c.StrokeLines(style, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min})
}
