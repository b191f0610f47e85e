package plot

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results"
)

// Curves is a plot of curves, with logarithmic axes unless they are set to linear.
type Curves struct {
	Title, XLabel, YLabel string  // texts; omitted if empty
	Note                  string  // below the title, smaller
	LinearX, LinearY      bool    // linear axes; a linear Y axis begins at 0 or below; default logarithmic
	Narrow                bool    // a linear axis of Y is as long as the curves need
	RangeY                *Range  // range of a linear axis of Y; NaN ends, and nil, are as long as the curves need
	BytesX                bool    // X counts bytes: a logarithmic axis has ticks in KiB, MiB and GiB; default false
	Curves                []Curve // the curves
}

// Curve is one curve. Its points are sorted by X, and positive for logarithmic axes.
type Curve struct {
	Name      string    // name in the legend; none if empty
	X, Y      []float64 // coordinates of the points
	Lo, Hi    []float64 // ends of error bars; nil for none
	Dashed    bool      // dashed line, for a reference; default false
	SameColor bool      // same color as the previous curve; default false
	Plain     bool      // no marks; default false
	Bound     bool      // bound for the others: gray, dashed and without marks; default false
}

// Span returns the range of Y.
func (c Curves) Span() Range {
	r := Range{math.NaN(), math.NaN()}
	for _, curve := range c.Curves {
		for _, y := range curve.Y {
			r = r.Join(Range{y, y})
		}
	}
	return r
}

// Gapped returns the curve through points in order, without marks: one curve per run of finite numbers.
func Gapped(name string, x, y []float64) (all []Curve) {
	gap := true
	for i, v := range y {
		if v-v != 0 || x[i]-x[i] != 0 { // NaN or infinite
			gap = true
			continue
		}
		if gap {
			all, gap = append(all, Curve{Name: name, Plain: true, SameColor: len(all) > 0}), false
			name = ""
		}
		last := &all[len(all)-1]
		last.X, last.Y = append(last.X, x[i]), append(last.Y, v)
	}
	return all
}

// marks distinguish curves in print without colors. There is one less than there are colors, so that the two
// do not cycle together. The second of each is for curves with SameColor.
var marks = [...][2]draw.GlyphDrawer{
	{draw.CircleGlyph{}, draw.RingGlyph{}}, {draw.BoxGlyph{}, draw.SquareGlyph{}}, {
		draw.PyramidGlyph{}, draw.TriangleGlyph{},
	},
	{draw.CrossGlyph{}, draw.CrossGlyph{}}, {draw.PlusGlyph{}, draw.PlusGlyph{}}, {draw.RingGlyph{}, draw.RingGlyph{}},
	{draw.SquareGlyph{}, draw.SquareGlyph{}},
}

func (c Curves) check() error {
	if len(c.Curves) == 0 {
		return errors.New("must have at least one curve")
	}
	for _, curve := range c.Curves {
		if err := c.checkCurve(curve); err != nil {
			return fmt.Errorf("curve %q: %w", curve.Name, err)
		}
	}
	return c.RangeY.check()
}

func (c Curves) checkCurve(curve Curve) error {
	n := len(curve.X)
	if n == 0 || len(curve.Y) != n {
		return fmt.Errorf("must have equally many x and y, at least one, got %d and %d", n, len(curve.Y))
	}
	if bars := len(curve.Lo); bars != len(curve.Hi) || bars != 0 && bars != n {
		return fmt.Errorf("error bars must have an end per point, got %d lower and %d upper ends for %d points",
			bars, len(curve.Hi), n)
	}
	for k, x := range curve.X {
		y := curve.Y[k]
		if results.Number(x) == nil || results.Number(y) == nil {
			return fmt.Errorf("points must be finite, got (%v, %v)", x, y)
		}
		if x <= 0 && !c.LinearX || y <= 0 && !c.LinearY {
			return fmt.Errorf("points on logarithmic axes must be positive, got (%v, %v)", x, y)
		}
	}
	return nil
}

func (c Curves) layout() (sheet, error) {
	if err := c.check(); err != nil {
		return sheet{}, err
	}
	p, l := c.plot()
	data := func(c draw.Canvas) { drawPlot(p, c) }
	return newSheet(heading{c.Title, c.Note}, l, chartWidth, chartHeight, data), nil
}

// plot returns the plot, and the legend of its curves.
func (c Curves) plot() (*plot.Plot, *legend) {
	p, l := newPlot(c.XLabel, c.YLabel), newLegend()
	p.X.Scale, p.Y.Scale = linearScale{}, linearScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = steps{whole: c.whole()}, steps{}
	p.Add(plotter.NewGrid())
	hue, bounds := -1, 0
	for i, curve := range c.Curves {
		if curve.Bound {
			style := curveStyle(gray, true)
			style.Dashes = boundDashes[bounds%len(boundDashes)]
			c.add(p, l, gray, style, curve)
			bounds++
			continue
		}
		if i == 0 || !curve.SameColor {
			hue++
		}
		c.add(p, l, hue, curveStyle(hue, curve.Dashed), curve)
	}
	if c.LinearX {
		pad(&p.X)
	} else {
		p.X.Scale, p.X.Tick.Marker = logScale{}, c.marksX()
		widen(&p.X)
	}
	if c.LinearY {
		if !c.Narrow {
			p.Y.Min = min(0, p.Y.Min)
		}
		pad(&p.Y)
		if c.RangeY != nil {
			r := c.RangeY.Or(Range{p.Y.Min, p.Y.Max})
			p.Y.Min, p.Y.Max = r.Lo, r.Hi
		}
	} else {
		p.Y.Scale, p.Y.Tick.Marker = logScale{}, decades{}
		widen(&p.Y)
	}
	return p, l
}

// whole reports whether all points are at integers of X.
func (c Curves) whole() bool {
	return !slices.ContainsFunc(c.Curves, func(curve Curve) bool {
		return slices.ContainsFunc(curve.X, func(x float64) bool { return x != math.Trunc(x) })
	})
}

func (c Curves) add(p *plot.Plot, l *legend, hue int, style draw.LineStyle, curve Curve) {
	points := make(plotter.XYs, len(curve.X))
	for k := range points {
		points[k].X, points[k].Y = curve.X[k], curve.Y[k]
	}
	line := &plotter.Line{XYs: points, LineStyle: style}
	p.Add(line)
	legendOf := []plot.Thumbnailer{line}
	if curve.Lo != nil {
		p.Add(errorBars(curve, points, c.LinearY, line.Color))
	}
	if !curve.Plain && !curve.Bound {
		mark := marks[hue%len(marks)][0]
		if curve.SameColor {
			mark = marks[hue%len(marks)][1]
		}
		dots := &plotter.Scatter{
			XYs: points, GlyphStyle: draw.GlyphStyle{Color: line.Color, Shape: mark, Radius: vg.Points(2.6)},
		}
		p.Add(dots)
		legendOf = append(legendOf, dots)
	}
	l.add(curve.Name, legendOf...)
}

// boundDashes distinguish bounds.
var boundDashes = [...][]vg.Length{{5, 3}, {1.5, 2.5}, {9, 3, 1.5, 3}, {12, 4}}

// curveStyle is the line style of a curve. After all colors are used, solid lines become dash-dotted.
func curveStyle(hue int, dashed bool) draw.LineStyle {
	style := draw.LineStyle{Color: palette[hue%len(palette)], Width: vg.Points(1.2)}
	switch {
	case dashed:
		style.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	case hue >= len(palette):
		style.Dashes = []vg.Length{vg.Points(8), vg.Points(2), vg.Points(2), vg.Points(2)}
	}
	return style
}

// errorBars returns the error bars of a curve. It omits a lower end that a logarithmic axis cannot show.
func errorBars(c Curve, points plotter.XYs, linear bool, hue color.Color) *plotter.YErrorBars {
	bars := &plotter.YErrorBars{XYs: points, YErrors: make(plotter.YErrors, len(points)), CapWidth: vg.Points(5)}
	bars.LineStyle = draw.LineStyle{Color: hue, Width: vg.Points(0.8)}
	for k, y := range c.Y {
		bars.YErrors[k] = errorBar(c.Lo[k], y, c.Hi[k])
		if !linear { // y minus it must be positive after rounding
			bars.YErrors[k].Low = min(bars.YErrors[k].Low, y*(1-0x1p-52))
		}
		if !linear && c.Lo[k] <= 0 {
			bars.YErrors[k].Low = 0
		}
	}
	return bars
}

// errorBar returns how far a bar from lo to hi extends below and above y. Its ends are finite after rounding.
func errorBar(lo, y, hi float64) (bar struct{ Low, High float64 }) {
	const most = math.MaxFloat64 * (1 - 0x1p-50)
	bar.Low, bar.High = max(0, min(y-lo, most+min(y, 0))), max(0, min(hi-y, most-max(y, 0)))
	return bar
}

// marksX returns the ticks of a logarithmic X axis: round numbers of bytes; or the places of all points, if
// these are a few integers far enough from each other; or powers of ten.
func (c Curves) marksX() plot.Ticker {
	if c.BytesX {
		return binaries{}
	}
	const least, most, apart = 3, 8, 1. / 12 // share of the axis
	var at []float64
	for _, curve := range c.Curves {
		at = append(at, curve.X...)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	if len(at) < least || len(at) > most || !c.whole() {
		return decades{}
	}
	for i := range at[1:] {
		if math.Log(at[i+1]/at[i]) < apart*math.Log(at[len(at)-1]/at[0]) {
			return decades{}
		}
	}
	ticks := make(plot.ConstantTicks, len(at))
	for i, v := range at {
		ticks[i] = plot.Tick{Value: v, Label: typeset(strconv.FormatFloat(v, 'g', 6, 64))}
	}
	return ticks
}

// Panels is plots of the same curves next to each other, with the legend of the panel with the most curves.
// The titles of the panels are not drawn.
type Panels struct {
	Title, Note string   // texts above the panels; omitted if empty
	Panels      []Curves // the panels, left to right
}

func (p Panels) layout() (sheet, error) {
	if len(p.Panels) == 0 {
		return sheet{}, errors.New("must have at least one panel")
	}
	var plots []*plot.Plot
	most := newLegend()
	for _, c := range p.Panels {
		if err := c.check(); err != nil {
			return sheet{}, err
		}
		one, l := c.plot()
		if plots = append(plots, one); len(l.names) > len(most.names) {
			most = l
		}
	}
	width := vg.Length(len(plots)) * 10 * vg.Centimeter
	return newSheet(heading{p.Title, p.Note}, most, width, chartHeight, func(c draw.Canvas) {
		each := c.Size().X / vg.Length(len(plots))
		for i, one := range plots {
			left := vg.Length(i) * each
			drawPlot(one, draw.Crop(c, left, left+each-c.Size().X-chartGap, 0, 0))
		}
	}), nil
}
