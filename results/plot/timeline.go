package plot

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/halox/halox/results/internal/wording"
	"github.com/halox/halox/results/trace"
)

// timelineSteps is how many steps a timeline shows: more cannot be told apart.
const timelineSteps = 2

// Timeline is the chart of the last steps of a trace. Each stream has a lane with a bar
// for every operation, in the colour of its category; bars of sweeps have the number of
// their step. Below the lanes of a device a strip says when it communicated, and whether it
// swept at the same time. A trace without steps has none.
func Timeline(t *trace.Trace) (Chart, error) { return newTimeline(t) }

// check implements Chart: what can be wrong is found when a timeline is laid out.
func (l *timeline) check() error { return nil }

// size implements Chart.
func (l *timeline) size() (width, height vg.Length) {
	return l.width + 2*chartMargin, l.height + 2*chartMargin
}

// The measures of a timeline, in points.
const (
	laneWidth  vg.Length = 560
	laneHeight vg.Length = 11
	lanePitch  vg.Length = 13 // from one lane to the next
	stripSize  vg.Length = 4
	deviceGap  vg.Length = 8
	headHeight vg.Length = 14 // of the name of a device
	minBar     vg.Length = 0.4
)

// A timeline is the part of a trace that is drawn, laid out: where its bars and texts
// are, seen from the lower left corner of the lanes.
type timeline struct {
	trace         *trace.Trace
	first, last   int64 // steps
	window        trace.Interval
	bars          []bar
	labels        []label
	names         []string // of what the legend explains
	axis          mapAxis
	area          vg.Rectangle // of the lanes
	origin        vg.Point     // of the area on the paper
	width, height vg.Length
}

// bar is a filled rectangle with a text in it, where that fits.
type bar struct {
	vg.Rectangle
	colour color.Color
	text   string
}

// label is a text left of the lanes: the name of a stream, or of a device, which stands
// above its lanes.
type label struct {
	text   string
	y      vg.Length // of its middle
	device bool
}

// The colours of a timeline, by category and by what the strip shows.
const (
	hiddenName  = "communication, hidden"
	exposedName = "exposed"
)

func timelineColour(name string) color.Color {
	switch name {
	case trace.Sweep:
		return colours[0]
	case trace.Unpack:
		return colours[1]
	case trace.Copy:
		return colours[2]
	case trace.Exchange:
		return colours[3]
	case trace.Pack:
		return colours[4]
	case trace.Other:
		return colours[5]
	case exposedName:
		return colours[6]
	case hiddenName:
		return color.Gray{0xa8}
	}
	return color.Gray{0xe4} // a wait
}

// newTimeline finds the window and the place of everything.
func newTimeline(t *trace.Trace) (*timeline, error) {
	l := &timeline{trace: t}
	if err := l.choose(); err != nil {
		return nil, err
	}
	height := vg.Length(0)
	for _, d := range t.Devices {
		height += deviceHeight(d)
	}
	l.area = vg.Rectangle{Max: vg.Point{X: laneWidth, Y: height}}
	top := height
	for _, d := range t.Devices {
		if deviceHeight(d) > 0 {
			l.addDevice(d, top)
			top -= deviceHeight(d)
		}
	}
	axis := span{l.window.Begin.Seconds() * 1e6, l.window.End.Seconds() * 1e6}
	l.axis = newMapAxis(below, l.area, axis, 0, 60)
	l.axis.title = "time in us"
	l.fit()
	return l, nil
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

// deviceHeight is what the lanes of a device take, with its name and the strip.
func deviceHeight(d trace.Device) vg.Length {
	if len(d.Streams) == 0 {
		return 0
	}
	return headHeight + vg.Length(len(d.Streams))*lanePitch + stripSize + deviceGap
}

// addDevice adds the bars and labels of a device, from its upper end down.
func (l *timeline) addDevice(d trace.Device, top vg.Length) {
	l.labels = append(l.labels, label{d.Name, top - headHeight/2, true})
	y := top - headHeight
	for _, s := range d.Streams {
		l.labels = append(l.labels, label{s.Name, y - laneHeight/2, false})
		for _, o := range s.Operations {
			text := ""
			if o.Category == trace.Sweep {
				text = fmt.Sprint(o.Step)
			}
			l.addBar(trace.Interval{Begin: o.Begin, End: o.End}, y, laneHeight, o.Category, text)
		}
		y -= lanePitch
	}
	all, hidden := d.Communication()
	for _, x := range all {
		l.addBar(x, y, stripSize, exposedName, "")
	}
	for _, x := range hidden {
		l.addBar(x, y, stripSize, hiddenName, "")
	}
}

// addBar adds what of a bar lies in the window.
func (l *timeline) addBar(x trace.Interval, top, height vg.Length, name, text string) {
	begin, end := max(x.Begin, l.window.Begin), min(x.End, l.window.End)
	if begin >= end {
		return
	}
	at := func(t time.Duration) vg.Length {
		return laneWidth * vg.Length(float64(t-l.window.Begin)/float64(l.window.End-l.window.Begin))
	}
	r := vg.Rectangle{Min: vg.Point{X: at(begin), Y: top - height}, Max: vg.Point{X: at(end), Y: top}}
	r.Max.X = min(max(r.Max.X, r.Min.X+minBar), laneWidth)
	l.bars = append(l.bars, bar{r, timelineColour(name), text})
	if !slices.Contains(l.names, name) {
		l.names = append(l.names, name)
	}
}

// title says what ran; the line below it, what is shown and how much was hidden.
func (l *timeline) title() (title, below string) {
	a := l.trace.About
	how := wording.Join(" ", a.Scheme, a.Order)
	if a.Path != "" {
		how = wording.Join(" ", how, "over", a.Path)
	}
	title = wording.Join(", ", how, strings.TrimSpace(a.Solver+" "+wording.Times(a.Size)), a.Precision)
	below = fmt.Sprintf("steps %d to %d", l.first, l.last)
	if l.first == l.last {
		below = fmt.Sprintf("step %d", l.first)
	}
	if hidden := l.trace.HiddenText(); hidden != "" {
		below += "; in all that was traced, " + hidden + " hidden behind sweeps"
	}
	return title, below
}

// legend returns what is to be explained, in one order for all timelines.
func (l *timeline) legend() []string {
	all := append(trace.Categories(), hiddenName, exposedName)
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(l.names, name) })
}

// The heights of the lines above the lanes.
const (
	titleLine vg.Length = 20
	textLine  vg.Length = 17
)

// fit makes the paper as large as what is on it, in whole points.
func (l *timeline) fit() {
	left := vg.Length(0)
	for _, x := range l.labels {
		if !x.device {
			left = max(left, sans(8).Width(x.text)+textGap)
		}
	}
	bounds := l.axis.bounds()
	l.origin.X = margin + vg.Length(math.Ceil(float64(max(left, -bounds.Min.X))))
	l.origin.Y = margin + vg.Length(math.Ceil(float64(-bounds.Min.Y)))
	title, below := l.title()
	right := max(l.origin.X+max(laneWidth, bounds.Max.X), margin+titleText().Width(title), margin+sans(10).Width(below))
	l.width = vg.Length(math.Ceil(float64(right + margin)))
	l.height = l.origin.Y + vg.Length(math.Ceil(float64(l.area.Max.Y+titleLine+2*textLine))) + margin
}

func (l *timeline) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	l.drawHead(c)
	c.Translate(l.origin)
	for _, b := range l.bars {
		b.draw(c)
	}
	for _, x := range l.labels {
		x.draw(c, margin-l.origin.X)
	}
	c.StrokeLine2(ink(), 0, 0, laneWidth, 0)
	l.axis.draw(c)
}

// drawHead writes the title, the line below it and the legend.
func (l *timeline) drawHead(c draw.Canvas) {
	title, below := l.title()
	at := vg.Point{X: margin, Y: l.height - margin}
	style := titleText()
	style.YAlign = draw.YTop
	c.FillText(style, at, title)
	at.Y -= titleLine
	style = sans(10)
	style.YAlign = draw.YTop
	c.FillText(style, at, below)
	at.Y -= textLine
	style = sans(9)
	style.YAlign = draw.YCenter
	for _, name := range l.legend() {
		patch := bar{vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - 9}, Max: vg.Point{X: at.X + 12, Y: at.Y}}, timelineColour(name), ""}
		patch.draw(c)
		c.FillText(style, vg.Point{X: at.X + 12 + textGap, Y: at.Y - 4}, name)
		at.X += 12 + textGap + style.Width(name) + 4*textGap
	}
}

func (b bar) draw(c draw.Canvas) {
	c.SetColor(b.colour)
	c.Fill(b.Path())
	width := b.Max.X - b.Min.X
	if width > 2 { // neighbours of one colour are to be told apart
		c.StrokeLine2(draw.LineStyle{Color: color.White, Width: 0.4}, b.Max.X, b.Min.Y, b.Max.X, b.Max.Y)
	}
	style := sans(7)
	if b.text == "" || style.Width(b.text)+2 > width {
		return
	}
	style.Color, style.XAlign, style.YAlign = color.White, draw.XCenter, draw.YCenter
	c.FillText(style, b.Min.Add(b.Max).Scale(0.5).Add(vg.Point{Y: 0.6}), b.text)
}

// draw writes the name of a device from the left end of the paper, that of a stream up to
// its lane.
func (x label) draw(c draw.Canvas, left vg.Length) {
	style, at := sans(8), vg.Point{X: -textGap, Y: x.y + 0.7}
	style.XAlign, style.YAlign = draw.XRight, draw.YCenter
	if x.device {
		style, at.X = sans(9.5), left
		style.YAlign = draw.YCenter
	}
	c.FillText(style, at, x.text)
}
