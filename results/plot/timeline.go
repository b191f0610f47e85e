package plot

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results/internal/wording"
	"github.com/halox/halox/results/trace"
)

// timelineSteps is the number of steps in a timeline: more are not readable.
const timelineSteps = 2

// maxLanes bounds the height of a timeline.
const maxLanes = 500

// Timeline is the chart of the last steps of a trace. Each stream has a lane with a bar for every operation, in the
// color of its category; bars of sweeps have the number of their step. The last lane of a device shows when it
// communicated, and whether it swept at the same time. A trace without steps is an error, and so is one with more lanes
// than fit on a page.
func Timeline(t *trace.Trace) (Chart, error) {
	lanes := 0
	for _, d := range t.Devices {
		lanes += len(d.Streams) + 2
	}
	if lanes > maxLanes {
		return nil, fmt.Errorf("a timeline of %d devices and their streams has %d lanes, must be at most %d",
			len(t.Devices), lanes, maxLanes)
	}
	l := &timeline{trace: t, bars: map[string]*plotter.Polygon{}}
	if err := l.choose(); err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(t.Devices) { // Y points up
		if len(d.Streams) > 0 {
			l.addDevice(d)
		}
	}
	return l, nil
}

// A timeline is the part of a trace that is drawn.
type timeline struct {
	trace       *trace.Trace
	first, last int64 // steps
	window      trace.Interval
	lanes       []string                    // names, lowest first
	bars        map[string]*plotter.Polygon // by category
	texts       plotter.Labels              // texts in bars
}

// The categories of the last lane of a device.
const (
	hiddenName  = "communication, hidden"
	exposedName = "exposed"
)

// timelineColors are the colors of categories. Others, which are waits, are light gray.
var timelineColors = map[string]color.Color{
	trace.Sweep: palette[0], trace.Unpack: palette[1], trace.Copy: palette[2], trace.Exchange: palette[3],
	trace.Pack: palette[4], trace.Other: palette[5], exposedName: palette[7], hiddenName: color.Gray{0xa8},
	trace.Wait: color.Gray{0xe4},
}

// choose finds the last steps, and the time range of their work.
func (l *timeline) choose() error {
	l.first, l.last = math.MaxInt64, 0
	l.each(func(o trace.Operation) { l.first, l.last = min(l.first, o.Step), max(l.last, o.Step) })
	if l.last-l.first >= timelineSteps {
		l.last-- // the trace ends before all work that depends on its last step
	}
	l.first = max(l.first, l.last-timelineSteps+1)
	l.window = trace.Interval{Begin: math.MaxInt64, End: 0}
	l.each(func(o trace.Operation) {
		if o.Step >= l.first && o.Step <= l.last && o.Category != trace.Wait {
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

// addDevice adds the lanes of a device, from the lowest up. The uppermost has its name.
func (l *timeline) addDevice(d trace.Device) {
	all, hidden := d.Communication()
	for _, x := range all {
		l.add(x, exposedName, "")
	}
	for _, x := range hidden {
		l.add(x, hiddenName, "")
	}
	l.lanes = append(l.lanes, "communication")
	for _, s := range slices.Backward(joined(d.Streams)) {
		for _, o := range s.Operations {
			text := ""
			if o.Category == trace.Sweep {
				text = fmt.Sprint(o.Step)
			}
			l.add(trace.Interval{Begin: o.Begin, End: o.End}, o.Category, text)
		}
		l.lanes = append(l.lanes, s.Name)
	}
	l.lanes = append(l.lanes, d.Name)
}

// joined joins streams of one name whose operations, but for waits, do not overlap.
func joined(streams []trace.Stream) (lanes []trace.Stream) {
	for _, s := range streams {
		i := slices.IndexFunc(lanes, func(l trace.Stream) bool { return l.Name == s.Name && !overlap(l, s) })
		if i < 0 {
			lanes = append(lanes, s)
			continue
		}
		lanes[i].Operations = slices.Concat(lanes[i].Operations, s.Operations)
	}
	return lanes
}

// overlap reports whether operations of two lanes overlap, but for waits.
func overlap(a, b trace.Stream) bool {
	var all []trace.Operation
	for _, o := range slices.Concat(a.Operations, b.Operations) {
		if o.Category != trace.Wait {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b trace.Operation) int { return cmp.Compare(a.Begin, b.Begin) })
	for i := range all[min(1, len(all)):] {
		if all[i+1].Begin < all[i].End {
			return true
		}
	}
	return false
}

// add adds the part of a bar in the window to the next lane, with a text if it fits. Bars end slightly early,
// so that neighbors of one color are distinguishable.
func (l *timeline) add(x trace.Interval, category, text string) {
	if x.Begin, x.End = max(x.Begin, l.window.Begin), min(x.End, l.window.End); x.Begin >= x.End {
		return
	}
	if l.bars[category] == nil {
		fill := timelineColors[category]
		l.bars[category] = &plotter.Polygon{Color: fill, LineStyle: draw.LineStyle{Color: fill, Width: 0.3}}
	}
	const gap, room = 1. / 1500, 1. / 60 // shares of the window
	bars, y := l.bars[category], float64(len(l.lanes))
	begin, end := microseconds(x.Begin-l.window.Begin), microseconds(x.End-l.window.Begin)
	all := microseconds(l.window.End - l.window.Begin)
	bars.XYs = append(bars.XYs, rectangle(begin, max(begin, end-gap*all), y-0.42, y+0.42))
	if end-begin > room*all {
		style := centered(sans(7))
		style.Color = color.White
		l.texts.XYs = append(l.texts.XYs, plotter.XY{X: (begin + end) / 2, Y: y})
		l.texts.Labels, l.texts.TextStyle = append(l.texts.Labels, text), append(l.texts.TextStyle, style)
	}
}

func microseconds(t time.Duration) float64 { return t.Seconds() * 1e6 }

// heading describes the run, the visible steps and the hidden share.
func (l *timeline) heading() heading {
	a := l.trace.About
	how := wording.Join(" ", a.Scheme, a.Order)
	if a.Path != "" {
		how = wording.Join(" ", how, "over", a.Path)
	}
	if a.Network != "" && a.Network != a.Path {
		how += " by " + a.Network
	}
	title := wording.Join(", ", how, strings.TrimSpace(a.Solver+" "+wording.Times(a.Size)), a.Precision)
	steps := fmt.Sprintf("steps %d to %d", l.first, l.last)
	if l.first == l.last {
		steps = fmt.Sprintf("step %d", l.first)
	}
	note := wording.Join(", ", a.Halox.String(), steps)
	if hidden := l.trace.HiddenText(); hidden != "" {
		note += "; in all that was traced, " + hidden + " hidden behind sweeps"
	}
	return heading{title, note}
}

func (l *timeline) layout() (sheet, error) {
	const lanePitch, axis = 14, 44
	p, explained := newPlot("time (µs)", ""), newLegend()
	p.NominalY(l.lanes...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(l.lanes))-0.5
	p.Y.Tick.Label.Font.Size = 9
	p.X.Tick.Marker = steps{}
	if waits := l.bars[trace.Wait]; waits != nil {
		p.Add(waits) // below others of joined streams
	}
	for _, category := range append(trace.Categories(), exposedName, hiddenName) { // hidden over exposed
		if bars := l.bars[category]; bars != nil {
			if category != trace.Wait {
				p.Add(bars)
			}
			explained.add(category, bars)
		}
	}
	p.Add(&l.texts)
	return newSheet(l.heading(), explained, 620, lanePitch*vg.Length(len(l.lanes))+axis, func(c draw.Canvas) {
		drawPlot(p, c)
	}), nil
}
