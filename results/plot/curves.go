package plot

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"maps"
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
	Name   string    // name in the legend; none if empty
	X, Y   []float64 // coordinates of the points
	Lo, Hi []float64 // ends of error bars; nil for none
	Dashed bool      // dashed line, for a reference; default false
	Color  string    // curves with one text share a color, and a scheme has its own; default the name
	Plain  bool      // no marks; default false
	Bound  bool      // bound for the others: gray, dashed and without marks; default false
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
	gap, color := true, name
	for i, v := range y {
		if v-v != 0 || x[i]-x[i] != 0 { // NaN or infinite
			gap = true
			continue
		}
		if gap {
			all, gap = append(all, Curve{Name: name, Color: color, Plain: true}), false
			name = ""
		}
		last := &all[len(all)-1]
		last.X, last.Y = append(last.X, x[i]), append(last.Y, v)
	}
	return all
}

// marks distinguish curves in print without colors. There is one less than there are colors, so that the two
// do not cycle together. The second of each is for further curves of a color.
var marks = [...][2]draw.GlyphDrawer{
	{draw.CircleGlyph{}, draw.RingGlyph{}}, {draw.BoxGlyph{}, draw.SquareGlyph{}}, {
		draw.PyramidGlyph{}, draw.TriangleGlyph{},
	},
	{draw.CrossGlyph{}, draw.PlusGlyph{}}, {draw.PlusGlyph{}, draw.CrossGlyph{}}, {draw.RingGlyph{}, draw.CircleGlyph{}},
	{draw.SquareGlyph{}, draw.BoxGlyph{}},
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
	hues, variants := c.hues()
	bounds := 0
	for i, curve := range c.Curves {
		if curve.Bound {
			style := curveStyle(gray, true)
			style.Dashes = boundDashes[bounds%len(boundDashes)]
			c.add(p, l, gray, 0, style, curve)
			bounds++
			continue
		}
		style := curveStyle(hues[i], curve.Dashed)
		if n := variants[i]; n > 0 && !curve.Dashed {
			style.Dashes = boundDashes[(n-1)%len(boundDashes)]
		}
		c.add(p, l, hues[i], variants[i], style, curve)
	}
	marked := slices.ContainsFunc(c.Curves, func(curve Curve) bool { return !curve.Plain && !curve.Bound })
	if c.LinearX {
		pad(&p.X)
	} else {
		p.X.Scale, p.X.Tick.Marker = logScale{}, decades{}
		if c.BytesX {
			p.X.Tick.Marker = binaries{}
		}
		widen(&p.X)
	}
	if ticks := c.measured(span{p.X.Min, p.X.Max}); marked && ticks != nil {
		p.X.Tick.Marker = ticks
	}
	if marked {
		margin(&p.X, !c.LinearX, true)
	}
	if c.LinearY {
		if !c.Narrow {
			p.Y.Min = min(0, p.Y.Min)
		}
		pad(&p.Y)
		if marked {
			margin(&p.Y, false, p.Y.Min != 0)
		}
		if c.RangeY != nil {
			r := c.RangeY.Or(Range{p.Y.Min, p.Y.Max})
			p.Y.Min, p.Y.Max = r.Lo, r.Hi
		}
	} else {
		p.Y.Scale, p.Y.Tick.Marker = logScale{}, decades{}
		widen(&p.Y)
		margin(&p.Y, true, true)
	}
	return p, l
}

// hues returns for each curve the index of its color, and how many curves before it have the same: pieces of a curve,
// which have no names, count as one.
func (c Curves) hues() (hues, variants []int) {
	known, count, next := map[string]int{}, map[string]int{}, 0
	for _, curve := range c.Curves {
		if hue, ok := schemeHues[cmp.Or(curve.Color, curve.Name)]; ok {
			known[cmp.Or(curve.Color, curve.Name)] = hue
		}
	}
	taken := slices.Collect(maps.Values(known))
	for _, curve := range c.Curves {
		key := cmp.Or(curve.Color, curve.Name)
		hue, ok := known[key]
		if !ok && !curve.Bound {
			for next < gray && slices.Contains(taken, next) {
				next++
			}
			hue = next
			next++
			known[key] = hue
		}
		if curve.Name != "" {
			count[key]++
		}
		hues, variants = append(hues, hue), append(variants, max(0, count[key]-1))
	}
	return hues, variants
}

// whole reports whether all points are at integers of X.
func (c Curves) whole() bool {
	return !slices.ContainsFunc(c.Curves, func(curve Curve) bool {
		return slices.ContainsFunc(curve.X, func(x float64) bool { return x != math.Trunc(x) })
	})
}

func (c Curves) add(p *plot.Plot, l *legend, hue, variant int, style draw.LineStyle, curve Curve) {
	points := make(plotter.XYs, len(curve.X))
	for k := range points {
		points[k].X, points[k].Y = curve.X[k], curve.Y[k]
	}
	line := &plotter.Line{XYs: points, LineStyle: style}
	p.Add(line)
	var legendOf []plot.Thumbnailer
	if len(points) > 1 {
		legendOf = append(legendOf, line)
	}
	if curve.Lo != nil {
		p.Add(errorBars(curve, points, c.LinearY, line.Color))
	}
	if !curve.Plain && !curve.Bound {
		mark := marks[hue%len(marks)][min(variant, 1)]
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
	style := draw.LineStyle{Color: palette[gray], Width: vg.Points(1.2)}
	if hue != gray {
		style.Color = palette[hue%gray]
	}
	switch {
	case dashed:
		style.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	case hue > gray:
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

// measured returns ticks of X where points are, as many as have space for their numbers; nil where these are too many
// to be those of a measurement, or not round.
func (c Curves) measured(axis span) plot.ConstantTicks {
	const least, most = 2, 40
	apart := 1. / 11 // share of the axis
	if c.BytesX {
		apart = 1. / 7
	}
	var at []float64
	for _, curve := range c.Curves {
		if !curve.Bound {
			at = append(at, curve.X...)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	if len(at) < least || len(at) > most || !c.BytesX && !c.whole() {
		return nil
	}
	place := func(v float64) float64 { return axis.fraction(v) }
	if !c.LinearX {
		place = func(v float64) float64 { return logScale{}.Normalize(axis.lo, axis.hi, v) }
	}
	var ticks plot.ConstantTicks
	last := math.Inf(-1)
	for _, v := range at {
		tick := plot.Tick{Value: v}
		if place(v)-last >= apart {
			tick.Label, last = typeset(strconv.FormatFloat(v, 'g', 6, 64)), place(v)
			if c.BytesX {
				tick.Label = sized(v)
			}
		}
		ticks = append(ticks, tick)
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
