package plot

import (
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// bars is a plot of bars in groups: one group per place along X, with one bar per set.
type bars struct {
	Title, XLabel, YLabel string
	Note                  string   // below the title, smaller
	Places                []string // along X
	Sets                  []barSet
}

// barSet is the bars of one color, one per place; NaN for none.
type barSet struct {
	Name   string
	Y      []float64
	Lo, Hi []float64 // the ends of error bars; nil for none
}

// layout makes a bar at least a few millimeters wide, and a place as wide as the words below it.
func (b bars) layout() (sheet, error) {
	p, l := newPlot(b.XLabel, b.YLabel), newLegend()
	grid := plotter.NewGrid()
	grid.Vertical.Color = color.Transparent
	p.Add(grid)
	for i, s := range b.Sets {
		b.add(p, l, i, s)
	}
	p.Y.Min = min(0, p.Y.Min)
	pad(&p.Y)
	margin(&p.Y, false, p.Y.Min < 0)
	p.X.Padding = chartGap / 2
	p.Y.Scale, p.Y.Tick.Marker = linearScale{}, steps{}
	const widest, axis = 6 * vg.Centimeter, 2 * vg.Centimeter
	place := vg.Length(len(b.Sets)+1) * 4 * vg.Millimeter
	for _, name := range b.Places {
		place = max(place, min(widest, longestWord(p.X.Tick.Label, name)+2*chartGap))
	}
	width := max(chartWidth, axis+vg.Length(len(b.Places))*place)
	return newSheet(heading{b.Title, b.Note}, l, width, chartHeight, func(c draw.Canvas) {
		b.namePlaces(p, draw.Crop(c, chartGap, 0, 0, 0))
		drawPlot(p, c)
	}), nil
}

// namePlaces writes the names below the bars, in lines no wider than a place.
func (b bars) namePlaces(p *plot.Plot, c draw.Canvas) {
	p.NominalX(make([]string, len(b.Places))...)
	place := p.DataCanvas(c).Size().X / vg.Length(float64(len(b.Places))+0.5) // NominalX leaves half a place free
	var names []string
	most := 1 // lines
	for _, name := range b.Places {
		lines := wrap(p.X.Tick.Label, name, place-textGap)
		names, most = append(names, strings.Join(lines, "\n")), max(most, len(lines))
	}
	for i := range names { // so that all begin at the same height
		names[i] += strings.Repeat("\n ", most-1-strings.Count(names[i], "\n"))
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(b.Places))-0.5
}

// add adds the i-th set. The bars of a place are centered.
func (b bars) add(p *plot.Plot, l *legend, i int, s barSet) {
	const group = 0.8 // of the distance to the next place
	width := group / float64(len(b.Sets))
	thin := draw.LineStyle{Color: color.Black, Width: vg.Points(0.5)}
	boxes := &plotter.Polygon{Color: palette[i%len(palette)], LineStyle: thin}
	errs := &plotter.YErrorBars{LineStyle: thin, CapWidth: vg.Points(5)}
	for place, v := range s.Y {
		if math.IsNaN(v) {
			continue
		}
		here, before := 0, 0
		for k, other := range b.Sets {
			if !math.IsNaN(other.Y[place]) {
				here++
				before += min(1, max(0, i-k))
			}
		}
		lo := float64(place) + (float64(before)-float64(here)/2)*width
		boxes.XYs = append(boxes.XYs, rectangle(lo, lo+width, 0, v))
		if s.Lo != nil && s.Lo[place] < s.Hi[place] {
			errs.XYs = append(errs.XYs, plotter.XY{X: lo + width/2, Y: v})
			errs.YErrors = append(errs.YErrors, errorBar(s.Lo[place], v, s.Hi[place]))
		}
	}
	p.Add(boxes)
	if len(errs.XYs) > 0 {
		p.Add(errs)
	}
	if len(b.Sets) > 1 {
		l.add(s.Name, boxes)
	}
}

// rectangle returns the corners of a rectangle.
func rectangle(left, right, bottom, top float64) plotter.XYs {
	return plotter.XYs{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}}
}
