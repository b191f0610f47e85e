package results

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curves is a plot of curves over logarithmic axes.
type Curves struct {
	Title, XLabel, YLabel string
	Curves                []Curve
}

// Curve is one of them. Its points are positive and in the order of X.
type Curve struct {
	Name   string
	X, Y   []float64
	Dashed bool // for what the others are compared with
	Twin   bool // it has the colour of the curve before it
}

// curveColours are those of Okabe and Ito (2008), which colour-blind readers can
// tell apart too, and grey.
var curveColours = [...]color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x00, 0x00, 0xff},
	{0x80, 0x80, 0x80, 0xff},
}

// mostInside is how many curves have their legend above them, inside the plot. The
// legend of more stands beside it.
const mostInside = 4

// WriteCurves draws the plot. The extension of path says how: .png, .svg or .pdf.
func WriteCurves(path string, c Curves) error {
	format := strings.ToLower(filepath.Ext(path))
	if !slices.Contains(pictureFormats, format) {
		return fmt.Errorf("results: plot %s: %q is not allowed: .png, .svg or .pdf", path, format)
	}
	if len(c.Curves) == 0 {
		return fmt.Errorf("results: plot %s: there are no curves", path)
	}
	p := newCurvesPlot(c)
	colour := -1
	for i, curve := range c.Curves {
		if i == 0 || !curve.Twin {
			colour++
		}
		if err := addCurve(p, colour, curve); err != nil {
			return fmt.Errorf("results: plot %s: curve %q: %w", path, curve.Name, err)
		}
	}
	widen(&p.X)
	widen(&p.Y)
	canvas := newCanvas(format, 18*vg.Centimeter, 12*vg.Centimeter)
	drawCurves(p, draw.New(canvas), len(c.Curves) > mostInside)
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	data := out.Bytes()
	if format == ".svg" {
		data = portableSVG(data)
	}
	if err == nil {
		err = writeAtomic(path, data)
	}
	if err != nil {
		return fmt.Errorf("results: plot %s: %w", path, err)
	}
	return nil
}

// newCurvesPlot returns the plot without curves.
func newCurvesPlot(c Curves) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.XLabel, c.YLabel
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	p.Title.Padding = vg.Points(6)
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	return p
}

// widen gives an axis with one number on it, or nearly so, a range.
func widen(a *plot.Axis) {
	if a.Max < 1.01*a.Min {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}

// drawCurves draws the plot with its legend above the curves, which leave a third
// of their height free for it, or beside them.
func drawCurves(p *plot.Plot, c draw.Canvas, beside bool) {
	if beside {
		drawBeside(p, c)
		return
	}
	p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, 0.33)
	p.Draw(c)
}

// drawBeside draws the plot with its legend in a stripe at the right. The title goes
// over both. The label of Y is drawn here too: package plot would leave half its
// length free above a logarithmic axis.
func drawBeside(p *plot.Plot, c draw.Canvas) {
	const gap = 8 // points
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	title, label, legend := p.Title, p.Y.Label, p.Legend
	p.Title.Text, p.Y.Label.Text, p.Legend = "", "", plot.NewLegend()

	c.FillText(title.TextStyle, vg.Point{X: c.Center().X, Y: c.Max.Y + title.TextStyle.FontExtents().Descent}, title.Text)
	c.Max.Y -= title.TextStyle.Rectangle(title.Text).Size().Y + title.Padding

	legend.TextStyle.Font.Size = vg.Points(9)
	legend.Padding = vg.Points(3)
	width := legend.Rectangle(c).Size().X + gap
	legend.Draw(draw.Crop(c, c.Size().X-width, 0, 0, -gap))

	left := label.TextStyle.Height(label.Text) + gap
	inner := draw.Crop(c, left, -width-gap, 0, -gap)
	p.Draw(inner)
	data := p.DataCanvas(inner)
	label.TextStyle.Rotation += math.Pi / 2
	c.FillText(label.TextStyle, vg.Point{X: c.Min.X + left - gap, Y: data.Center().Y}, label.Text)
}

// decades marks a logarithmic axis at powers of ten. Where fewer than three of
// them lie on it, it writes the numbers at 2 and 5 times them too, and where fewer
// than two of all those do, at all whole multiples.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(lo, hi float64) []plot.Tick {
	if ticks, n := decadeTicks(lo, hi, 1); n > 2 {
		return ticks
	}
	if ticks, n := decadeTicks(lo, hi, 1, 2, 5); n > 1 {
		return ticks
	}
	ticks, _ := decadeTicks(lo, hi, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	return ticks
}

// decadeTicks marks the whole multiples of the powers of ten from lo to hi. It
// returns too how many have their number written.
func decadeTicks(lo, hi float64, written ...int) (ticks []plot.Tick, n int) {
	const reach = 1e-9 // what rounding may take
	for e := math.Floor(math.Log10(lo)); math.Pow(10, e) <= hi; e++ {
		for i := 1; i < 10; i++ {
			tick := plot.Tick{Value: float64(i) * math.Pow(10, e)}
			if tick.Value < lo*(1-reach) || tick.Value > hi*(1+reach) {
				continue
			}
			if slices.Contains(written, i) {
				tick.Label = strconv.FormatFloat(tick.Value, 'g', 6, 64)
				n++
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks, n
}

func addCurve(p *plot.Plot, colour int, c Curve) error {
	if len(c.X) != len(c.Y) || len(c.X) == 0 {
		return fmt.Errorf("%d x for %d y", len(c.X), len(c.Y))
	}
	points := make(plotter.XYs, len(c.X))
	for k := range points {
		if !(c.X[k] > 0) || !(c.Y[k] > 0) {
			return fmt.Errorf("point (%v, %v) on logarithmic axes", c.X[k], c.Y[k])
		}
		points[k].X, points[k].Y = c.X[k], c.Y[k]
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color = curveColours[colour%len(curveColours)]
	line.Width = vg.Points(1.2)
	dots.Color, dots.Shape, dots.Radius = line.Color, draw.CircleGlyph{}, vg.Points(2.2)
	if c.Dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.Add(line, dots)
	p.Legend.Add(c.Name, line, dots)
	return nil
}
