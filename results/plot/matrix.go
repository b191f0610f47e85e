package plot

import (
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// matrix is heat maps of numbers from some things to others, one beside another, with
// one scale of colours and the numbers in their cells.
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

func (m matrix) check() error {
	if len(m.Grids) == 0 || len(m.Rows) == 0 || len(m.Cols) == 0 {
		return errors.New("there are no cells")
	}
	for _, g := range m.Grids {
		if len(g.Values) != len(m.Rows) {
			return fmt.Errorf("map %q: %d rows, want %d", g.Name, len(g.Values), len(m.Rows))
		}
		for _, row := range g.Values {
			if len(row) != len(m.Cols) {
				return fmt.Errorf("map %q: %d columns, want %d", g.Name, len(row), len(m.Cols))
			}
		}
	}
	return nil
}

// The measures of a matrix.
const (
	matrixCell = 40 * vg.Length(1)
	matrixText = 46 * vg.Length(1) // left of a map and above it, for names
	matrixBar  = 70 * vg.Length(1) // right of all, for the colours
	nameLine   = 14 * vg.Length(1) // of the name of a map
)

// nameWidth is that of the lines of names: of the cells below, or of the longest word.
func (m matrix) nameWidth() vg.Length {
	width := matrixCell * vg.Length(len(m.Cols))
	for _, g := range m.Grids {
		width = max(width, longestWord(axisText(), g.Name))
	}
	return width
}

// nameHeight is that of all lines of the longest name but one, for which there is room.
func (m matrix) nameHeight() (height vg.Length) {
	for _, g := range m.Grids {
		height = max(height, nameLine*vg.Length(len(wrap(axisText(), g.Name, m.nameWidth()))-1))
	}
	return height
}

func (m matrix) mapSize() vg.Point {
	return vg.Point{X: matrixText + m.nameWidth(), Y: matrixText + m.nameHeight() + matrixCell*vg.Length(len(m.Rows))}
}

// size is wide enough for a title.
func (m matrix) size() (width, height vg.Length) {
	one := m.mapSize()
	width = max(vg.Length(len(m.Grids))*(one.X+chartGap)+matrixBar, 12*vg.Centimeter) + 2*chartMargin
	return width, one.Y + heading{m.Title, m.Note}.height(width-2*chartMargin) + 3*chartMargin + chartGap
}

// values is the span of the finite numbers.
func (m matrix) values() span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, g := range m.Grids {
		for _, row := range g.Values {
			for _, v := range row {
				if results.Number(v) != nil {
					s.lo, s.hi = min(s.lo, v), max(s.hi, v)
				}
			}
		}
	}
	return s
}

func (m matrix) draw(c draw.Canvas) {
	c = heading{m.Title, m.Note}.draw(c)
	colors, values := viridis(256), m.values()
	one := m.mapSize()
	at := vg.Point{X: c.Min.X, Y: c.Max.Y - chartGap}
	for _, g := range m.Grids {
		m.drawGrid(c, g, at, colors, values)
		at.X += one.X + chartGap
	}
	if !values.empty() {
		top := at.Y - matrixText - m.nameHeight()
		m.drawBar(c, vg.Rectangle{
			Min: vg.Point{X: at.X + chartGap, Y: at.Y - one.Y},
			Max: vg.Point{X: at.X + chartGap + barWidth, Y: top},
		}, colors, values)
	}
}

// drawGrid draws a map below and to the right of a point.
func (m matrix) drawGrid(c draw.Canvas, g grid, at vg.Point, colors []color.RGBA, values span) {
	name := axisText()
	name.XAlign, name.YAlign = draw.XCenter, draw.YTop
	left, top := at.X+matrixText, at.Y-matrixText-m.nameHeight()
	cells := matrixCell * vg.Length(len(m.Cols))
	middle := left + cells/2
	from := middle
	if m.nameWidth() > cells {
		name.XAlign, from = draw.XLeft, left
	}
	for i, line := range wrap(name, g.Name, m.nameWidth()) {
		c.FillText(name, vg.Point{X: from, Y: at.Y - nameLine*vg.Length(i)}, line)
	}
	small := sans(9)
	small.XAlign, small.YAlign = draw.XCenter, draw.YBottom
	c.FillText(small, vg.Point{X: middle, Y: top + 14}, m.ColsOf)
	small.Rotation = quarterTurn
	c.FillText(small, vg.Point{X: left - 22, Y: top - matrixCell*vg.Length(len(m.Rows))/2}, m.RowsOf)
	tick := tickText()
	for j, col := range m.Cols {
		tick.XAlign, tick.YAlign = draw.XCenter, draw.YBottom
		c.FillText(tick, vg.Point{X: left + matrixCell*(vg.Length(j)+0.5), Y: top + 3}, col)
	}
	for i, row := range m.Rows {
		y := top - matrixCell*vg.Length(i)
		tick.XAlign, tick.YAlign = draw.XRight, draw.YCenter
		c.FillText(tick, vg.Point{X: left - 4, Y: y - matrixCell/2}, row)
		for j, v := range g.Values[i] {
			x := left + matrixCell*vg.Length(j)
			drawCell(c, vg.Rectangle{Min: vg.Point{X: x, Y: y - matrixCell}, Max: vg.Point{X: x + matrixCell, Y: y}}, v, colors, values)
		}
	}
}

// drawCell draws a number on its colour, in black or white, whichever can be read.
func drawCell(c draw.Canvas, r vg.Rectangle, v float64, colors []color.RGBA, values span) {
	style := tickText()
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	fill, text := color.RGBA{0xee, 0xee, 0xee, 0xff}, "-"
	if results.Number(v) != nil {
		fill = colors[min(len(colors)-1, int(values.fraction(v)*float64(len(colors))))]
		text = wording.Digits(v)
	}
	if luminance := 0.2126*float64(fill.R) + 0.7152*float64(fill.G) + 0.0722*float64(fill.B); luminance < 120 {
		style.Color = color.White
	}
	c.SetColor(fill)
	c.Fill(r.Path())
	corners := []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min}
	c.StrokeLines(draw.LineStyle{Color: color.White, Width: vg.Points(1)}, corners)
	c.FillText(style, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, text)
}

// drawBar draws the scale of colours, with its numbers and their unit.
func (m matrix) drawBar(c draw.Canvas, r vg.Rectangle, colors []color.RGBA, values span) {
	step := r.Size().Y / vg.Length(len(colors))
	for i, shade := range colors {
		c.SetColor(shade)
		y := r.Min.Y + step*vg.Length(i)
		c.Fill(vg.Rectangle{Min: vg.Point{X: r.Min.X, Y: y}, Max: vg.Point{X: r.Max.X, Y: min(r.Max.Y, y+2*step)}}.Path())
	}
	scale := newMapAxis(right, r, values, (values.hi-values.lo)/200, 30)
	scale.draw(c)
	unit := axisText()
	unit.YAlign = draw.YBottom
	c.FillText(unit, vg.Point{X: r.Min.X, Y: r.Max.Y + 4}, m.Unit)
}
