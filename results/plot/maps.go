package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// A Picture is a chart of a plane of NX by NY points as a heat map. Point (ix, iy) is at X0 + ix*DX, Y0 + iy*DY and
// colors the cell around it; y points up. Both axes have one scale, except for planes longer than eight times their
// width, which are widened to stay readable. Non-finite values are gray.
type Picture struct {
	Title, XLabel, YLabel string // texts; omitted if empty
	Label                 string // name of the values with their unit, at the color bar; omitted if empty

	NX, NY int       // number of points along X and Y
	Values []float64 // x fastest, lowest row first; length NX*NY

	X0, Y0 float64 // position of point (0, 0)
	DX, DY float64 // spacing, above zero

	// Values beyond the cells: at the left, right, lower and upper side. The last two extend over the corners.
	Sides [4]Side

	Colors string // one of ColorMaps; default the first
	Range  *Range // values of the first and the last color; default the smallest and the largest finite value
}

// A Side is a strip beyond the outermost cells of a picture, such as the values of a boundary.
type Side struct {
	Width  float64   // from the cells outwards, at least 0; without values the strip is white
	Values []float64 // one per cell along the side; nil for none
}

// The dimensions of a picture, in points.
const (
	mapLong  vg.Length = 336 // longer side of the map
	mapShort vg.Length = 42  // the shorter side is never below
	barWidth vg.Length = 14  // width of the colors of a color bar
)

// mapSize is the size of a map with the given ratio of sides.
func mapSize(width, height float64) vg.Point {
	longer := max(width, height)
	side := func(length float64) vg.Length {
		return max(mapShort, vg.Length(math.Round(length/longer*float64(mapLong))))
	}
	return vg.Point{X: side(width), Y: side(height)}
}

// PixelsOf returns the size, in pixels, of the map of a picture with the given lengths of axes. More points
// than pixels are not visible: average them first.
func PixelsOf(width, height float64) (x, y int) {
	size := mapSize(width, height)
	return int(size.X) * pixelsPerPoint, int(size.Y) * pixelsPerPoint
}

func (p Picture) check() error {
	if p.NX < 1 || p.NY < 1 {
		return fmt.Errorf("the size must be at least 1 x 1 points, got %d x %d", p.NX, p.NY)
	}
	if len(p.Values) != p.NX*p.NY {
		return fmt.Errorf("must have %d x %d values, got %d", p.NX, p.NY, len(p.Values))
	}
	if p.DX <= 0 || p.DY <= 0 {
		return fmt.Errorf("the spacing must be positive, got %g, %g", p.DX, p.DY)
	}
	for i, side := range p.Sides {
		if n := []int{p.NY, p.NX}[i/2]; side.Values != nil && len(side.Values) != n || !(side.Width >= 0) {
			return fmt.Errorf("side %d must have a width of at least 0 and no or %d values, got %g and %d",
				i, n, side.Width, len(side.Values))
		}
	}
	for _, side := range []span{p.spanX(), p.spanY()} {
		if length := side.hi - side.lo; math.IsInf(length, 0) || math.IsNaN(length) || length <= 0 {
			return fmt.Errorf("an axis from %g to %g cannot be drawn", side.lo, side.hi)
		}
	}
	if colorMap(p.Colors) < 0 {
		return fmt.Errorf("the colors must be %s, got %q", strings.Join(ColorMaps(), ", "), p.Colors)
	}
	return p.Range.check()
}

// spanX and spanY reach half a spacing past the outermost points, and over the sides.
func (p Picture) spanX() span {
	return span{p.X0 - p.DX/2 - p.Sides[0].Width, p.X0 + (float64(p.NX)-0.5)*p.DX + p.Sides[1].Width}
}

func (p Picture) spanY() span {
	return span{p.Y0 - p.DY/2 - p.Sides[2].Width, p.Y0 + (float64(p.NY)-0.5)*p.DY + p.Sides[3].Width}
}

func (p Picture) mapSize() vg.Point {
	x, y := p.spanX(), p.spanY()
	return mapSize(x.hi-x.lo, y.hi-y.lo)
}

// finite returns the range of the finite values, those of the sides among them, and whether there are others.
func (p Picture) finite() (r Range, others bool) {
	r = Range{math.NaN(), math.NaN()}
	add := func(values []float64) {
		for _, v := range values {
			if v-v != 0 { // NaN or infinite
				others = true
				continue
			}
			r.Lo, r.Hi = lesser(v, r.Lo), -lesser(-v, -r.Hi)
		}
	}
	add(p.Values)
	for _, side := range p.Sides {
		add(side.Values)
	}
	return r, others
}

// Span returns the range of the colors of a picture whose Range is nil. Its ends are NaN if no value is finite.
func (p Picture) Span() Range {
	r, _ := p.finite()
	if colorMaps[colorMap(p.Colors)].diverging && r.Lo < 0 && r.Hi > 0 {
		r.Hi = max(-r.Lo, r.Hi)
		r.Lo = -r.Hi
	}
	return r
}

// shown returns the span of the colors, empty without finite values, and a note about values that have no color of
// their own.
func (p Picture) shown() (s span, note string) {
	all, others := p.finite()
	if math.IsNaN(all.Lo) {
		return span{1, 0}, "gray: not finite"
	}
	r := p.Span()
	if p.Range != nil {
		r = p.Range.Or(all)
	}
	s = span{r.Lo, max(r.Lo, r.Hi)} // if only one end is set, it may be beyond all values
	if all.Lo < s.lo || all.Hi > s.hi {
		note = fmt.Sprintf("values from %s to %s", typeset(wording.Digits(all.Lo)), typeset(wording.Digits(all.Hi)))
	}
	if others {
		note = wording.Join(", ", note, "gray: not finite")
	}
	if p.Range != nil {
		note = cmp.Or(note, " ") // so that pictures of one range have one size
	}
	return s, note
}

// plot returns the map. Its axes run from 0 to 1, since those of the points may exceed the range of float64.
func (p Picture) plot(values span) *plot.Plot {
	m := newPlot(p.XLabel, p.YLabel)
	m.X.Padding, m.Y.Padding = 0, 0
	m.X.LineStyle.Width, m.Y.LineStyle.Width = 0, 0 // the outline is there
	size := p.mapSize()
	m.X.Tick.Marker = plot.ConstantTicks(p.spanX().ticks(max(3, int(size.X/48))))
	m.Y.Tick.Marker = plot.ConstantTicks(p.spanY().ticks(max(3, int(size.Y/48))))
	width, height := int(size.X)*pixelsPerPoint, int(size.Y)*pixelsPerPoint
	m.Add(plotter.NewImage(p.image(values, width, height), 0, 0, 1, 1), outline())
	return m
}

// Map returns the map alone, without axes, in a number of pixels, and the range of its colors.
func (p Picture) Map(width, height int) (image.Image, Range, error) {
	if err := p.check(); err != nil {
		return nil, Range{}, err
	}
	values, _ := p.shown()
	return p.image(values, width, height), Range{values.lo, values.hi}, nil
}

// image colors the pixels of the map; row 0 of an image is its top.
func (p Picture) image(values span, width, height int) image.Image {
	columns := cellsOf(width, p.NX, p.DX, p.Sides[0], p.Sides[1])
	rows := cellsOf(height, p.NY, p.DY, p.Sides[2], p.Sides[3])
	img := image.NewRGBA(image.Rect(0, 0, len(columns), len(rows)))
	colors := shades(colorMap(p.Colors), 200) // see indexed
	for y, iy := range rows {
		for x, ix := range columns {
			img.SetRGBA(x, len(rows)-1-y, shade(colors, values, p.at(ix, iy)))
		}
	}
	return img
}

// cellsOf returns the cells along an axis that pixels show: -1 and n for the strips at the sides, which have at least
// one pixel each if they have values.
func cellsOf(pixels, n int, spacing float64, low, high Side) []int {
	cells := make([]int, pixels)
	width := float64(n)*spacing + low.Width + high.Width
	strip := func(s Side) int {
		if s.Values == nil {
			return 0
		}
		return max(1, int(math.Round(s.Width/width*float64(pixels))))
	}
	first, last := strip(low), pixels-strip(high)
	for i := range cells {
		switch {
		case i < first:
			cells[i] = -1
		case i >= last:
			cells[i] = n
		default:
			cells[i] = (i - first) * n / (last - first)
		}
	}
	return cells
}

// at returns the value of a cell, or of a strip.
func (p Picture) at(ix, iy int) float64 {
	x, y := min(max(0, ix), p.NX-1), min(max(0, iy), p.NY-1)
	switch {
	case iy < 0:
		return p.Sides[2].Values[x]
	case iy >= p.NY:
		return p.Sides[3].Values[x]
	case ix < 0:
		return p.Sides[0].Values[y]
	case ix >= p.NX:
		return p.Sides[1].Values[y]
	}
	return p.Values[y*p.NX+x]
}

// shade returns the color of a value.
func shade(colors []color.RGBA, values span, v float64) color.RGBA {
	if v-v != 0 {
		return notFinite
	}
	last := len(colors) - 1
	at := min(max(0, values.fraction(v)), 1)
	return colors[int(at*float64(last)+0.5)]
}

// layout sets the size of the map from its sides.
func (p Picture) layout() (sheet, error) {
	if err := p.check(); err != nil {
		return sheet{}, err
	}
	values, note := p.shown()
	m, size := p.plot(values), p.mapSize()
	frame := frameOf(m)
	bar := newColorBar(values, p.Label, colorMap(p.Colors), size.Y)
	width, height := size.X+frame.X+bar.width(), size.Y+frame.Y
	s := newSheet(heading{p.Title, note}, newLegend(), width, height, func(c draw.Canvas) {
		inner := draw.Crop(c, 0, -bar.width(), 0, 0)
		drawPlot(m, inner)
		bar.draw(c, mapCanvas(m, inner))
	})
	s.colors = colorMaps[colorMap(p.Colors)].name
	return s, nil
}

// frameOf returns how much larger a plot is than its data.
func frameOf(p *plot.Plot) vg.Point {
	const much = 1000
	data := mapCanvas(p, draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: much, Y: much}}}).Size()
	return vg.Point{X: much - data.X, Y: much - data.Y}
}

// colorBar is the scale of colors for a span at the right of maps, with its numbers; nil if there are none.
type colorBar struct{ *plot.Plot }

// newColorBar returns a color bar of about the given height.
func newColorBar(values span, title string, of int, height vg.Length) *colorBar {
	if values.empty() {
		return nil
	}
	p := newPlot("", title)
	p.HideX()
	p.X.Padding, p.Y.Padding = 0, 0
	p.Y.LineStyle.Width = 0 // the outline is there
	p.Y.Tick.Marker = plot.ConstantTicks(values.ticks(max(4, int(height/24))))
	colors := shades(of, scaleShades)
	img := image.NewRGBA(image.Rect(0, 0, 1, len(colors)))
	for i, c := range colors {
		img.SetRGBA(0, len(colors)-1-i, c)
	}
	p.Add(plotter.NewImage(img, 0, 0, 1, 1), outline())
	return &colorBar{p}
}

// outline is the border of an image, which may be as white as the page.
func outline() plot.Plotter {
	style := draw.LineStyle{Color: color.Black, Width: vg.Points(0.5)}
	return &plotter.Polygon{XYs: []plotter.XYs{rectangle(0, 1, 0, 1)}, LineStyle: style}
}

// width is that of the bar with its numbers, and a gap at its left.
func (b *colorBar) width() vg.Length {
	if b == nil {
		return 0
	}
	return chartGap + frameOf(b.Plot).X + barWidth
}

// draw draws the bar at the right of a canvas, as high as a map on it.
func (b *colorBar) draw(c, data draw.Canvas) {
	if b == nil {
		return
	}
	c.Min.X = c.Max.X - b.width() + chartGap
	c.Min.Y, c.Max.Y = data.Min.Y, data.Max.Y
	inner := mapCanvas(b.Plot, c)
	c.Min.Y, c.Max.Y = c.Min.Y-(inner.Min.Y-c.Min.Y), c.Max.Y+(c.Max.Y-inner.Max.Y) // numbers may be beyond the ends
	drawPlot(b.Plot, c)
}

// matrix is heat maps of numbers between things, next to each other, with one color scale and the numbers in
// their cells.
type matrix struct {
	Title, Note    string
	Unit           string // of the numbers
	RowsOf, ColsOf string // what rows and columns represent
	Rows, Cols     []string
	Grids          []grid
}

// grid is one of the maps: Values[row][col], NaN for none.
type grid struct {
	Name   string
	Values [][]float64
}

func (m matrix) layout() (sheet, error) {
	const cell = 40
	title := centered(sans(11))
	title.YAlign = draw.YTop
	width := vg.Length(cell * len(m.Cols))
	for _, g := range m.Grids {
		width = max(width, title.Width(g.Name))
	}
	width += 60
	values, height := m.values(), vg.Length(cell*len(m.Rows))+74
	scale := newColorBar(values, m.Unit, 0, vg.Length(cell*len(m.Rows)))
	all := max(vg.Length(len(m.Grids))*width+scale.width(), 12*vg.Centimeter)
	s := newSheet(heading{m.Title, m.Note}, newLegend(), all, height, func(c draw.Canvas) {
		var data draw.Canvas
		for i, g := range m.Grids {
			p := newPlot(m.ColsOf, m.RowsOf)
			p.Title.Text, p.Title.TextStyle = g.Name, title
			rows := slices.Clone(m.Rows)
			slices.Reverse(rows) // the first is at the top
			p.NominalX(m.Cols...)
			p.NominalY(rows...)
			p.X.Padding, p.Y.Padding = 0, 0
			g.add(p, values)
			left := width * vg.Length(i)
			one := draw.Crop(c, left, left+width-c.Size().X-chartGap, 0, 0)
			drawPlot(p, one)
			data = mapCanvas(p, one)
		}
		scale.draw(c, data)
	})
	s.colors = colorMaps[0].name
	return s, nil
}

// values returns the span of the finite numbers.
func (m matrix) values() span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, g := range m.Grids {
		for _, v := range slices.Concat(g.Values...) {
			if results.Number(v) != nil {
				s.lo, s.hi = min(s.lo, v), max(s.hi, v)
			}
		}
	}
	return s
}

// add adds the numbers of a grid, each on its color, in black or white for contrast.
func (g grid) add(p *plot.Plot, values span) {
	colors, texts := shades(0, scaleShades), &plotter.Labels{}
	for i, row := range g.Values {
		y := float64(len(g.Values) - 1 - i)
		for j, v := range row {
			x := float64(j)
			style, fill, text := centered(sans(10)), color.RGBA{0xee, 0xee, 0xee, 0xff}, "-"
			if results.Number(v) != nil {
				fill, text = shade(colors, values, v), wording.Digits(v)
			}
			if luminance := 0.2126*float64(fill.R) + 0.7152*float64(fill.G) + 0.0722*float64(fill.B); luminance < 120 {
				style.Color = color.White
			}
			p.Add(&plotter.Polygon{
				XYs: []plotter.XYs{rectangle(x-0.5, x+0.5, y-0.5, y+0.5)}, Color: fill,
				LineStyle: draw.LineStyle{Color: color.White, Width: vg.Points(1)},
			})
			texts.XYs, texts.Labels = append(texts.XYs, plotter.XY{X: x, Y: y}), append(texts.Labels, text)
			texts.TextStyle = append(texts.TextStyle, style)
		}
	}
	p.Add(texts)
}
