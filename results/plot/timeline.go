package plot

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results/internal/wording"
	"github.com/halox/halox/results/trace"
)

// timelineSteps is the number of steps that a timeline shows: more cannot be told apart.
const timelineSteps = 2

// Timeline is the chart of the last steps of a trace. Each stream has a lane with a bar for every operation, in the
// color of its category; bars of sweeps have the number of their step. The last lane of a device shows when it
// communicated, and whether it swept at the same time. A trace without steps is an error.
func Timeline(t *trace.Trace) (Chart, error) {
	l := &timeline{trace: t}
	if err := l.choose(); err != nil {
		return nil, err
	}
	for _, d := range t.Devices {
		if len(d.Streams) > 0 {
			l.addDevice(d)
		}
	}
	slices.Reverse(l.lanes) // Y points up
	return l, nil
}

// A timeline is the part of a trace that is drawn.
type timeline struct {
	trace       *trace.Trace
	first, last int64 // steps
	window      trace.Interval
	lanes       []lane // the lowest first
}

// A lane is a line of bars with a name.
type lane struct {
	name string
	bars []bar
}

// A bar is an interval in the color of a category, with a text in it where that fits.
type bar struct {
	trace.Interval
	category, text string
}

// The categories of the last lane of a device.
const (
	hiddenName  = "communication, hidden"
	exposedName = "exposed"
)

// timelineColors are the colors of categories. Others, which are waits, are light gray.
var timelineColors = map[string]color.Color{
	trace.Sweep: colours[0], trace.Unpack: colours[1], trace.Copy: colours[2], trace.Exchange: colours[3],
	trace.Pack: colours[4], trace.Other: colours[5], exposedName: colours[6], hiddenName: color.Gray{0xa8},
	trace.Wait: color.Gray{0xe4},
}

// choose finds the last steps, and from when to when they were worked on.
func (l *timeline) choose() error {
	l.first, l.last = math.MaxInt64, 0
	l.each(func(o trace.Operation) { l.first, l.last = min(l.first, o.Step), max(l.last, o.Step) })
	l.first = max(l.first, l.last-timelineSteps+1)
	l.window = trace.Interval{Begin: math.MaxInt64, End: 0}
	l.each(func(o trace.Operation) {
		if o.Step >= l.first && o.Category != trace.Wait {
			l.window = trace.Interval{Begin: min(l.window.Begin, o.Begin), End: max(l.window.End, o.End)}
		}
	})
	if l.window.Begin >= l.window.End {
		return errors.New("the trace is empty")
	}
	return nil
}

func (l *timeline) each(do func(o trace.Operation)) {
	for _, d := range l.trace.Devices {
		for _, s := range d.Streams {
			for _, o := range s.Operations {
				do(o)
			}
		}
	}
}

// addDevice adds the lanes of a device, from the uppermost down. The first has its name.
func (l *timeline) addDevice(d trace.Device) {
	l.lanes = append(l.lanes, lane{name: d.Name})
	for _, s := range d.Streams {
		next := lane{name: s.Name}
		for _, o := range s.Operations {
			text := ""
			if o.Category == trace.Sweep {
				text = fmt.Sprint(o.Step)
			}
			l.add(&next, trace.Interval{Begin: o.Begin, End: o.End}, o.Category, text)
		}
		l.lanes = append(l.lanes, next)
	}
	all, hidden := d.Communication()
	below := lane{name: "communication"}
	for _, x := range all {
		l.add(&below, x, exposedName, "")
	}
	for _, x := range hidden {
		l.add(&below, x, hiddenName, "")
	}
	l.lanes = append(l.lanes, below)
}

// add adds the part of a bar that is in the window.
func (l *timeline) add(to *lane, x trace.Interval, category, text string) {
	x.Begin, x.End = max(x.Begin, l.window.Begin), min(x.End, l.window.End)
	if x.Begin >= x.End {
		return
	}
	to.bars = append(to.bars, bar{x, category, text})
}

// heading says what ran, what is shown and how much was hidden.
func (l *timeline) heading() heading {
	a := l.trace.About
	how := wording.Join(" ", a.Scheme, a.Order)
	if a.Path != "" {
		how = wording.Join(" ", how, "over", a.Path)
	}
	title := wording.Join(", ", how, strings.TrimSpace(a.Solver+" "+wording.Times(a.Size)), a.Precision)
	note := fmt.Sprintf("steps %d to %d", l.first, l.last)
	if l.first == l.last {
		note = fmt.Sprintf("step %d", l.first)
	}
	if hidden := l.trace.HiddenText(); hidden != "" {
		note += "; in all that was traced, " + hidden + " hidden behind sweeps"
	}
	return heading{title, note}
}

func (l *timeline) layout() (sheet, error) {
	const lanePitch, axis = 14, 44
	p, explained := newPlot("time in us", ""), newLegend()
	var names []string
	for _, one := range l.lanes {
		names = append(names, one.name)
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(l.lanes))-0.5
	p.Y.Tick.Label.Font.Size = 9
	p.X.Tick.Marker = steps{}
	texts := &plotter.Labels{}
	for _, category := range append(trace.Categories(), exposedName, hiddenName) { // hidden over exposed
		if boxes := l.boxes(category, texts); len(boxes.XYs) > 0 {
			p.Add(boxes)
			explained.add(category, boxes)
		}
	}
	p.Add(texts)
	return newSheet(l.heading(), explained, 620, lanePitch*vg.Length(len(l.lanes))+axis, func(c draw.Canvas) {
		drawPlot(p, c)
	}), nil
}

// boxes returns all bars of a category, and adds their texts to others where they fit. Bars end a little early, so that
// neighbors of one color can be told apart.
func (l *timeline) boxes(category string, texts *plotter.Labels) *plotter.Polygon {
	fill := timelineColors[category]
	boxes := &plotter.Polygon{Color: fill, LineStyle: draw.LineStyle{Color: fill, Width: 0.3}}
	begin, end := microseconds(l.window)
	const gap, room = 1. / 1500, 1. / 60 // of the window
	style := centered(sans(7))
	style.Color = color.White
	for i, one := range l.lanes {
		for _, b := range one.bars {
			if b.category != category {
				continue
			}
			left, right := microseconds(b.Interval)
			middle := plotter.XY{X: (left + right) / 2, Y: float64(i)}
			boxes.XYs = append(boxes.XYs, rectangle(left, max(left, right-gap*(end-begin)), middle.Y-0.42, middle.Y+0.42))
			if right-left > room*(end-begin) {
				texts.XYs, texts.Labels = append(texts.XYs, middle), append(texts.Labels, b.text)
				texts.TextStyle = append(texts.TextStyle, style)
			}
		}
	}
	return boxes
}

func microseconds(x trace.Interval) (begin, end float64) {
	return x.Begin.Seconds() * 1e6, x.End.Seconds() * 1e6
}
