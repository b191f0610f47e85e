package plot

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// bars is a plot of bars in groups: one for each place along X, and in each a bar for
// each of the sets.
type bars struct {
	Title, XLabel, YLabel string
	Note                  string   // below the title, smaller
	Places                []string // along X
	Sets                  []barSet
}

// barSet is the bars of one colour, one a place; NaN where there is none.
type barSet struct {
	Name   string
	Y      []float64
	Lo, Hi []float64 // the ends of error bars; nil for none
}

func (b bars) check() error {
	if len(b.Sets) == 0 || len(b.Places) == 0 {
		return errors.New("there are no bars")
	}
	for _, s := range b.Sets {
		if len(s.Y) != len(b.Places) || s.Lo != nil && len(s.Lo) != len(s.Y) || len(s.Lo) != len(s.Hi) {
			return fmt.Errorf(
				"bars %q: %d for %d places, error bars %d and %d", s.Name, len(s.Y), len(b.Places), len(s.Lo),
				len(s.Hi),
			)
		}
	}
	return nil
}

func (b bars) names() (names []string) {
	for _, s := range b.Sets {
		names = append(names, s.Name)
	}
	return names
}

// size makes a bar at least a few millimetres wide, and a place as wide as the words below it.
func (b bars) size() (width, height vg.Length) {
	const widest = 6 * vg.Centimeter
	words := newPlot("", "").X.Tick.Label
	place := vg.Length(len(b.Sets)+1) * 4 * vg.Millimeter
	for _, name := range b.Places {
		place = max(place, min(widest, longestWord(words, name)+2*chartGap))
	}
	return widthFor(b.names()) + max(0, vg.Length(len(b.Places))*place-8*vg.Centimeter), heightFor(b.names())
}

// namePlaces writes the names below the bars, in lines no wider than a place.
func (b bars) namePlaces(p *plot.Plot, c draw.Canvas) {
	p.NominalX(make([]string, len(b.Places))...)
	place := p.DataCanvas(c).Size().X / vg.Length(float64(len(b.Places))+0.5) // NominalX leaves half of one free
	var names []string
	most := 1 // lines
	for _, name := range b.Places {
		lines := wrap(p.X.Tick.Label, name, place-textGap)
		names, most = append(names, strings.Join(lines, "\n")), max(most, len(lines))
	}
	for i := range names { // so that all begin at one height
		names[i] += strings.Repeat("\n ", most-1-strings.Count(names[i], "\n"))
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(b.Places))-0.5
}

func (b bars) draw(canvas draw.Canvas) {
	p, legend := newPlot(b.XLabel, b.YLabel), newLegend()
	grid := plotter.NewGrid()
	grid.Vertical.Color = color.Transparent
	p.Add(grid)
	for i, s := range b.Sets {
		set := barPlot{s, i, b}
		p.Add(set)
		legend.Add(s.Name, set)
	}
	p.Y.Min = min(0, p.Y.Min)
	pad(&p.Y)
	p.Y.Tick.Marker = steps{}
	canvas = heading{b.Title, b.Note}.draw(canvas)
	switch names := b.names(); {
	case len(names) == 1:
	case beside(names):
		canvas = drawBeside(canvas, legend, names)
	default:
		p.Legend = legend
		p.Y.Max += (p.Y.Max - p.Y.Min) * 0.4
	}
	b.namePlaces(p, draw.Crop(canvas, chartGap, 0, 0, 0))
	drawPlot(p, canvas)
}

// barPlot draws the i-th of all sets.
type barPlot struct {
	barSet
	i   int
	all bars
}

// span returns where the bar at a place begins and ends along X: in the middle of the
// place stand the bars that it has.
func (b barPlot) span(place int) (lo, hi float64) {
	const group = 0.8 // of the way to the next
	here, before := 0, 0
	for i, s := range b.all.Sets {
		if !math.IsNaN(s.Y[place]) {
			here++
			if i < b.i {
				before++
			}
		}
	}
	width := group / float64(len(b.all.Sets))
	lo = float64(place) + (float64(before)-float64(here)/2)*width
	return lo, lo + width
}

// Plot implements plot.Plotter.
func (b barPlot) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for place, v := range b.Y {
		if math.IsNaN(v) {
			continue
		}
		lo, hi := b.span(place)
		b.fill(c, vg.Rectangle{Min: vg.Point{X: x(lo), Y: y(min(0, v))}, Max: vg.Point{X: x(hi), Y: y(max(0, v))}})
		if b.Lo != nil && b.Lo[place] < b.Hi[place] {
			drawWhisker(
				c, draw.LineStyle{Color: color.Black, Width: vg.Points(0.8)}, x((lo+hi)/2), y(b.Lo[place]),
				y(b.Hi[place]),
			)
		}
	}
}

// fill fills a bar with its colour and, so that it can be told in print without
// colours, with white stripes: none, level, upright or both.
func (b barPlot) fill(c draw.Canvas, r vg.Rectangle) {
	c.SetColor(colours[b.i%len(colours)])
	pattern := (b.i + b.i/len(colours)) % 4
	c.Fill(r.Path())
	const apart = 4
	stripe := draw.LineStyle{Color: color.White, Width: vg.Points(0.9)}
	if pattern == 1 || pattern == 3 {
		for y := r.Min.Y + apart; y < r.Max.Y; y += apart {
			c.StrokeLine2(stripe, r.Min.X, y, r.Max.X, y)
		}
	}
	if pattern >= 2 {
		for x := r.Min.X + apart; x < r.Max.X; x += apart {
			c.StrokeLine2(stripe, x, r.Min.Y, x, r.Max.Y)
		}
	}
	stroke(c, r, draw.LineStyle{Color: color.Black, Width: vg.Points(0.5)})
}

// Thumbnail implements plot.Thumbnailer.
func (b barPlot) Thumbnail(c *draw.Canvas) { b.fill(*c, c.Rectangle) }

// DataRange implements plot.DataRanger.
func (b barPlot) DataRange() (xmin, xmax, ymin, ymax float64) {
	ymax = math.Inf(-1)
	for i, v := range b.Y {
		if math.IsNaN(v) {
			continue
		}
		ymin, ymax = min(ymin, v), max(ymax, v)
		if b.Hi != nil {
			ymax = max(ymax, b.Hi[i])
		}
	}
	return 0, float64(len(b.Y) - 1), ymin, max(ymin, ymax)
}

// drawWhisker draws an error bar with its ends.
func drawWhisker(c draw.Canvas, style draw.LineStyle, x, lo, hi vg.Length) {
	const end = 2.5
	c.StrokeLine2(style, x, lo, x, hi)
	c.StrokeLine2(style, x-end, lo, x+end, lo)
	c.StrokeLine2(style, x-end, hi, x+end, hi)
}
