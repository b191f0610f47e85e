package results

import (
	"bytes"
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/internal/files"
)

// A Chart is a plot of numbers: [Curves], [Bars], [Panels] or [Matrix].
type Chart interface {
	check() error
	size() (width, height vg.Length)
	draw(c draw.Canvas)
}

// WriteChart draws a chart. The extension of path says how: .png, .svg or .pdf.
func WriteChart(path string, c Chart) error {
	data, err := encodeChart(strings.ToLower(filepath.Ext(path)), c)
	if err == nil {
		err = files.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("results: plot %s: %w", path, err)
	}
	return nil
}

func encodeChart(format string, c Chart) ([]byte, error) {
	if !slices.Contains(pictureFormats, format) {
		return nil, fmt.Errorf("%q is not allowed: .png, .svg or .pdf", format)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	width, height := c.size()
	canvas := newCanvas(format, width, height)
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	c.draw(draw.Crop(page, chartMargin, -chartMargin, chartMargin, -chartMargin))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	if format == ".svg" {
		return portableSVG(out.Bytes()), err
	}
	return out.Bytes(), err
}

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

// wrap breaks text into lines no wider than that, between words.
func wrap(style text.Style, s string, width vg.Length) (lines []string) {
	if s == "" {
		return nil
	}
	for paragraph := range strings.SplitSeq(s, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if longer := join(" ", line, word); line == "" || style.Width(longer) <= width {
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

// drawPlot draws a plot. The label of Y is drawn here: package plot would leave half
// its length free above a logarithmic axis.
func drawPlot(p *plot.Plot, c draw.Canvas) {
	label := p.Y.Label
	p.Y.Label.Text = ""
	left := label.TextStyle.Height(label.Text) + chartGap
	inner := draw.Crop(c, left, 0, 0, 0)
	p.Draw(inner)
	style := label.TextStyle
	style.Rotation += quarterTurn
	data := p.DataCanvas(inner)
	c.FillText(style, vg.Point{X: c.Min.X + left - chartGap, Y: data.Center().Y}, label.Text)
}
