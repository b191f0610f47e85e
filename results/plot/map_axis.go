package plot

import (
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A side says on which side of a rectangle an axis lies.
type side int

const (
	below side = iota
	left
	right
)

// A mapAxis is a numbered edge, of the map or of the colour bar.
type mapAxis struct {
	side     side
	from, to vg.Point // the edge, from its lower end
	ticks    []tick
	title    string // none where empty
}

// newMapAxis numbers one edge of a rectangle with about one tick every so many
// points, but about three at least, or as many as its labels leave room for. A
// round number outside of the values by no more than reach is marked at the end.
func newMapAxis(side side, area vg.Rectangle, values span, reach float64, apart vg.Length) mapAxis {
	r := edge(side, area)
	for n := max(3, int(r.length()/apart)); n > 0; n-- {
		r.ticks = values.ticks(n, reach)
		if r.labelsFit() {
			return r
		}
	}
	return r
}

// edge is an axis without numbers on one edge of a rectangle.
func edge(side side, area vg.Rectangle) mapAxis {
	r := mapAxis{side: side, from: area.Min, to: area.Max}
	switch side {
	case below:
		r.to.Y = area.Min.Y
	case left:
		r.to.X = area.Min.X
	case right:
		r.from.X = area.Max.X
	}
	return r
}

func (r mapAxis) length() vg.Length { return r.to.X - r.from.X + r.to.Y - r.from.Y }

// labelsFit reports whether neighbouring labels keep their distance.
func (r mapAxis) labelsFit() bool {
	across := 2 * r.overhang()
	if r.side == below {
		across += 2 * textGap
	}
	for i := 1; i < len(r.ticks); i++ {
		if vg.Length(r.ticks[i].at-r.ticks[i-1].at)*r.length() < across {
			return false
		}
	}
	return true
}

// overhang is by how much a label may reach past the ends of the edge.
func (r mapAxis) overhang() vg.Length {
	width, height := r.labelSize()
	if r.side == below {
		return width / 2
	}
	return height / 2
}

// depth is by how much the axis reaches away from its edge.
func (r mapAxis) depth() vg.Length {
	width, height := r.labelSize()
	across, gap := width, 2*textGap
	if r.side == below { // a line of text brings room of its own
		across, gap = height, textGap
	}
	depth := tickSize + textGap + across
	if r.title != "" {
		depth += gap + axisText().Height(r.title)
	}
	return depth
}

// labelSize is that of the widest and of the highest label.
func (r mapAxis) labelSize() (width, height vg.Length) {
	style := tickText()
	for _, t := range r.ticks {
		width = max(width, style.Width(t.label))
		height = max(height, style.Height(t.label))
	}
	return width, height
}

// bounds is the room that the axis takes, with its edge.
func (r mapAxis) bounds() vg.Rectangle {
	depth, over := r.depth(), r.overhang()
	box := vg.Rectangle{Min: r.from, Max: r.to}
	switch r.side {
	case below:
		box.Min.Y -= depth
		box.Min.X, box.Max.X = box.Min.X-over, box.Max.X+over
	case left:
		box.Min.X -= depth
		box.Min.Y, box.Max.Y = box.Min.Y-over, box.Max.Y+over
	case right:
		box.Max.X += depth
		box.Min.Y, box.Max.Y = box.Min.Y-over, box.Max.Y+over
	}
	return box
}

func (r mapAxis) draw(c draw.Canvas) {
	out := r.outward()
	style := r.labelStyle()
	for _, t := range r.ticks {
		foot := vg.Point{
			X: r.from.X + vg.Length(t.at)*(r.to.X-r.from.X),
			Y: r.from.Y + vg.Length(t.at)*(r.to.Y-r.from.Y),
		}
		tip := foot.Add(out.Scale(tickSize))
		c.StrokeLine2(ink(), foot.X, foot.Y, tip.X, tip.Y)
		c.FillText(style, tip.Add(out.Scale(textGap)).Add(r.lift()), t.label)
	}
	r.drawTitle(c)
}

// lift raises a label beside its tick: the middle of a digit is above that of
// its line, which has room for descenders.
func (r mapAxis) lift() vg.Point {
	if r.side == below {
		return vg.Point{}
	}
	return vg.Point{Y: 0.9}
}

// drawTitle puts the title along the outer end of the axis.
func (r mapAxis) drawTitle(c draw.Canvas) {
	if r.title == "" {
		return
	}
	style := axisText()
	if r.side != below {
		style.Rotation = math.Pi / 2
	}
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	if r.side == left {
		style.YAlign = draw.YTop
	}
	middle := r.from.Add(r.to).Scale(0.5)
	c.FillText(style, middle.Add(r.outward().Scale(r.depth())), r.title)
}

// outward points away from the rectangle and is one point long.
func (r mapAxis) outward() vg.Point {
	return [...]vg.Point{below: {Y: -1}, left: {X: -1}, right: {X: 1}}[r.side]
}

// labelStyle sets a label so that it begins, ends or hangs at its tick.
func (r mapAxis) labelStyle() text.Style {
	style := tickText()
	switch r.side {
	case below:
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	case left:
		style.XAlign, style.YAlign = draw.XRight, draw.YCenter
	case right:
		style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	}
	return style
}
