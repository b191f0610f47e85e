package plot

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// A Picture is a chart of a plane of NX by NY points as a heat map. Point (ix, iy) is at X0 + ix*DX, Y0 + iy*DY and
// colors the cell around it; y points up. Both axes have one scale, except for planes longer than eight times their
// width, which are widened to stay readable. The colors span the smallest to the largest finite value; non-finite
// values are gray.
type Picture struct {
	Title, XLabel, YLabel string // none where empty

	NX, NY int
	Values []float64 // x fastest, the lowest row first

	X0, Y0 float64 // position of point (0, 0)
	DX, DY float64 // spacing, above zero
}

// The measures of a picture, in points.
const (
	mapLong   vg.Length = 336 // longer side of the map
	mapShort  vg.Length = 42  // the shorter side is never below
	colorsBar vg.Length = 80  // width of the color bar with its numbers
)

// mapSize is the size of a map whose sides are in such a relation.
func mapSize(width, height float64) vg.Point {
	longer := max(width, height)
	side := func(length float64) vg.Length {
		return max(mapShort, vg.Length(math.Round(length/longer*float64(mapLong))))
	}
	return vg.Point{X: side(width), Y: side(height)}
}

// PixelsOf returns the size, in pixels, of the map of a picture whose axes are so long. More points than pixels are
// not seen: average them before.
func PixelsOf(width, height float64) (x, y int) {
	size := mapSize(width, height)
	return int(size.X) * pixelsPerPoint, int(size.Y) * pixelsPerPoint
}

func (p Picture) check() error {
	if p.NX < 1 || p.NY < 1 {
		return fmt.Errorf("its size is %d x %d points, want at least 1 x 1", p.NX, p.NY)
	}
	if len(p.Values) != p.NX*p.NY {
		return fmt.Errorf("it has %d values, want %d x %d", len(p.Values), p.NX, p.NY)
	}
	if p.DX <= 0 || p.DY <= 0 {
		return fmt.Errorf("its spacing is %g, %g, want above zero", p.DX, p.DY)
	}
	for _, side := range []span{p.spanX(), p.spanY()} {
		if length := side.hi - side.lo; math.IsInf(length, 0) || math.IsNaN(length) || length <= 0 {
			return fmt.Errorf("an axis from %g to %g cannot be drawn", side.lo, side.hi)
		}
	}
	return nil
}

// spanX and spanY reach half a spacing past the outermost points.
func (p Picture) spanX() span { return span{p.X0 - p.DX/2, p.X0 + (float64(p.NX)-0.5)*p.DX} }
func (p Picture) spanY() span { return span{p.Y0 - p.DY/2, p.Y0 + (float64(p.NY)-0.5)*p.DY} }

func (p Picture) mapSize() vg.Point {
	x, y := p.spanX(), p.spanY()
	return mapSize(x.hi-x.lo, y.hi-y.lo)
}

// values is the span of the finite values, and whether there are others.
func (p Picture) values() (s span, others bool) {
	s = span{math.Inf(1), math.Inf(-1)}
	for _, v := range p.Values {
		if v-v != 0 { // NaN or infinite
			others = true
			continue
		}
		s.lo, s.hi = min(s.lo, v), max(s.hi, v)
	}
	return s, others
}

// plot returns the map. Its axes run from 0 to 1, since those of the points may be longer than float64 can tell.
func (p Picture) plot() *plot.Plot {
	m := newPlot(p.XLabel, p.YLabel)
	m.X.Padding, m.Y.Padding = 0, 0
	size := p.mapSize()
	axisTicks := func(s span, spacing float64, length vg.Length) plot.ConstantTicks {
		reach := min(0.501*spacing, (s.hi-s.lo)/100) // the walls are half a spacing outside of the outermost cells
		return s.ticks(max(3, int(length/48)), reach)
	}
	m.X.Tick.Marker = axisTicks(p.spanX(), p.DX, size.X)
	m.Y.Tick.Marker = axisTicks(p.spanY(), p.DY, size.Y)
	m.Add(plotter.NewImage(p.image(), 0, 0, 1, 1))
	return m
}

// image colors the pixels of the map; row 0 of an image is its top.
func (p Picture) image() image.Image {
	size := p.mapSize()
	width, height := int(size.X)*pixelsPerPoint, int(size.Y)*pixelsPerPoint
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	colors := viridis(512)
	values, _ := p.values()
	for y := range height {
		row := p.Values[y*p.NY/height*p.NX:]
		for x := range width {
			img.SetRGBA(x, height-1-y, shade(colors, values, row[x*p.NX/width]))
		}
	}
	return img
}

// shade returns the color of a value.
func shade(colors []color.RGBA, values span, v float64) color.RGBA {
	if v-v != 0 {
		return notFinite
	}
	last := len(colors) - 1
	return colors[min(max(0, int(values.fraction(v)*float64(last)+0.5)), last)]
}

// layout sets the size of the map from its sides.
func (p Picture) layout() (sheet, error) {
	if err := p.check(); err != nil {
		return sheet{}, err
	}
	const much = 1000
	m := p.plot()
	data := mapCanvas(m, draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: much, Y: much}}}).Size()
	size := p.mapSize()
	values, others := p.values()
	h := heading{title: p.Title}
	if others {
		h.note = "gray: not finite"
	}
	return newSheet(h, newLegend(), size.X+much-data.X+colorsBar, size.Y+much-data.Y, func(c draw.Canvas) {
		inner := draw.Crop(c, 0, -colorsBar, 0, 0)
		drawPlot(m, inner)
		if !values.empty() {
			bar := mapCanvas(m, inner)
			bar.Min.X, bar.Max.X = c.Max.X-colorsBar+chartGap, c.Max.X
			drawColorBar(bar, values, "")
		}
	}), nil
}

// drawColorBar draws the scale of colors for a span, as high as the canvas, with its numbers.
func drawColorBar(c draw.Canvas, values span, title string) {
	const width = 14
	p := newPlot("", title)
	p.HideX()
	p.X.Padding, p.Y.Padding = 0, 0
	p.Y.Tick.Marker = plot.ConstantTicks(values.ticks(max(4, int(c.Size().Y/24)), (values.hi-values.lo)/200))
	colors := viridis(256)
	img := image.NewRGBA(image.Rect(0, 0, 1, len(colors)))
	for i := range colors {
		at := (float64(i) + 0.5) / float64(len(colors))
		img.SetRGBA(0, len(colors)-1-i, shade(colors, values, values.lo*(1-at)+values.hi*at))
	}
	p.Add(plotter.NewImage(img, 0, 0, 1, 1))
	if over := mapCanvas(p, c).Size().X - width; over > 0 {
		c.Max.X -= over
	}
	drawPlot(p, c)
}

// matrix is heat maps of numbers from some things to others, one next to the other, with one scale of colors and the
// numbers in their cells.
type matrix struct {
	Title, Note    string
	Unit           string // of the numbers
	RowsOf, ColsOf string // what the rows and the columns are
	Rows, Cols     []string
	Grids          []grid
}

// grid is one of the maps: Values[row][col], NaN where there is none.
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
	all, height := max(vg.Length(len(m.Grids))*width+colorsBar, 12*vg.Centimeter), vg.Length(cell*len(m.Rows))+74
	values := m.values()
	return newSheet(heading{m.Title, m.Note}, newLegend(), all, height, func(c draw.Canvas) {
		bar := draw.Crop(c, c.Size().X-colorsBar, 0, 0, 0)
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
			data := mapCanvas(p, one)
			bar.Min.Y, bar.Max.Y = data.Min.Y, data.Max.Y
		}
		if !values.empty() {
			drawColorBar(bar, values, m.Unit)
		}
	}), nil
}

// values is the span of the finite numbers.
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

// add adds the numbers of a grid, each on its color, in black or white, whichever can be read.
func (g grid) add(p *plot.Plot, values span) {
	colors, texts := viridis(256), &plotter.Labels{}
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
