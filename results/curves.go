package results

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
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
}

// curveColours are those of Okabe and Ito (2008), which colour-blind readers can
// tell apart too.
var curveColours = [...]color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x00, 0x00, 0xff},
}

// WriteCurves draws the plot. The extension of path says how: .png, .svg or .pdf.
func WriteCurves(path string, c Curves) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.XLabel, c.YLabel
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	for i, curve := range c.Curves {
		if err := addCurve(p, i, curve); err != nil {
			return fmt.Errorf("results: plot %s: curve %q: %w", path, curve.Name, err)
		}
	}
	// Room for the legend above the curves: a third of their height.
	p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, 0.33)
	p.Title.Padding = vg.Points(6)
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".png", ".svg", ".pdf":
	default:
		return fmt.Errorf("results: plot %s: %q is not allowed: .png, .svg or .pdf", path, ext)
	}
	if err := save(p, path); err != nil {
		return fmt.Errorf("results: plot %s: %w", path, err)
	}
	return nil
}

// save writes the plot, whole or not at all. Points of a PNG are as fine as print
// needs.
func save(p *plot.Plot, path string) error {
	const width, height, dpi = 18 * vg.Centimeter, 12 * vg.Centimeter, 180
	var out bytes.Buffer
	if strings.EqualFold(filepath.Ext(path), ".png") {
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		p.Draw(draw.New(canvas))
		if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&out); err != nil {
			return err
		}
		return writeAtomic(path, out.Bytes())
	}
	w, err := p.WriterTo(width, height, strings.ToLower(filepath.Ext(path)[1:]))
	if err != nil {
		return err
	}
	if _, err := w.WriteTo(&out); err != nil {
		return err
	}
	return writeAtomic(path, out.Bytes())
}

func addCurve(p *plot.Plot, i int, c Curve) error {
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
	line.Color = curveColours[i%len(curveColours)]
	line.Width = vg.Points(1.2)
	dots.Color, dots.Shape, dots.Radius = line.Color, draw.CircleGlyph{}, vg.Points(2.2)
	if c.Dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.Add(line, dots)
	p.Legend.Add(c.Name, line, dots)
	return nil
}
