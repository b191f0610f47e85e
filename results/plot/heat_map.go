package plot

import (
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// flat is the width of a map, in heights, from which the bar lies below it.
const flat = 2.0

// A heatMap is a picture laid out: where the map, the bar and their axes are,
// seen from the lower left corner of the map.
type heatMap struct {
	title         string
	raster        *raster
	colors        []color.RGBA
	area          vg.Rectangle // of the map
	bar           vg.Rectangle // of the colour bar; of no size where no value is finite
	hole          vg.Rectangle // of the patch for what is not finite; of no size where all is
	axes          []mapAxis
	origin        vg.Point // of the map on the paper
	width, height vg.Length
}

// newHeatMap finds the place of everything, from the map outwards.
func newHeatMap(p *Picture) *heatMap {
	size := mapSize(p.spanX(), p.spanY())
	s := &heatMap{
		title:  p.Title,
		raster: newRaster(p, int(size.X)*pixelsPerPoint, int(size.Y)*pixelsPerPoint),
		colors: viridis(512),
		area:   vg.Rectangle{Max: size},
		axes:   make([]mapAxis, 0, 4),
	}
	s.axes = append(s.axes,
		newMapSideAxis(below, s.area, p.spanX(), p.DX, p.XLabel),
		newMapSideAxis(left, s.area, p.spanY(), p.DY, p.YLabel))
	if size.X >= flat*size.Y {
		s.placeBarBelow()
	} else {
		s.placeBarRight()
	}
	s.fit()
	return s
}

// newMapSideAxis is the axis of the map on one side. The walls lie half a spacing
// outside of the outermost cells; where that is too little to be seen, they are
// numbered at the ends.
func newMapSideAxis(side side, area vg.Rectangle, values span, spacing float64, title string) mapAxis {
	reach := min(spacing/2, (values.hi-values.lo)/100)
	axis := newMapAxis(side, area, values, reach, 36)
	axis.title = title
	return axis
}

// mapSize is the size of a map with one scale on both axes, within the limits.
func mapSize(x, y span) vg.Point {
	width, height := x.hi-x.lo, y.hi-y.lo
	longer := max(width, height)
	side := func(length float64) vg.Length {
		return max(mapShort, vg.Length(math.Round(length/longer*float64(mapLong))))
	}
	return vg.Point{X: side(width), Y: side(height)}
}

// placeBarRight puts the bar right of the map and the patch under it.
func (s *heatMap) placeBarRight() {
	strip := s.area
	strip.Min.X = s.area.Max.X + barGap
	strip.Max.X = strip.Min.X + barWidth
	if s.raster.holes {
		s.hole = strip
		s.hole.Max.Y = strip.Min.Y + holeSize
		strip.Min.Y = s.hole.Max.Y + holeGap
	}
	s.placeBar(right, strip)
}

// placeBarBelow puts the bar under the map and its axis, the patch before it.
func (s *heatMap) placeBarBelow() {
	strip := s.area
	strip.Max.Y = vg.Length(math.Floor(float64(s.axes[0].bounds().Min.Y - barGap/2)))
	strip.Min.Y = strip.Max.Y - barWidth
	if s.raster.holes {
		s.hole = strip
		s.hole.Max.X = strip.Min.X + holeSize
		strip.Min.X = s.hole.Max.X + 4*holeGap // room for the labels of both
	}
	s.placeBar(below, strip)
}

// placeBar numbers the bar and names the patch.
func (s *heatMap) placeBar(side side, strip vg.Rectangle) {
	if values := s.raster.values; !values.empty() {
		s.bar = strip
		s.axes = append(s.axes, newMapAxis(side, strip, values, (values.hi-values.lo)/200, 30))
	}
	if s.raster.holes {
		name := edge(side, s.hole)
		name.ticks = []tick{{0.5, "not finite"}}
		s.axes = append(s.axes, name)
	}
}

// fit makes the paper as large as what is on it, in whole points.
func (s *heatMap) fit() {
	box := s.area
	for _, r := range s.axes {
		box = union(box, r.bounds())
	}
	if s.title != "" {
		box = union(box, s.titleBounds())
	}
	s.origin.X = margin + vg.Length(math.Ceil(float64(-box.Min.X)))
	s.origin.Y = margin + vg.Length(math.Ceil(float64(-box.Min.Y)))
	s.width = s.origin.X + margin + vg.Length(math.Ceil(float64(box.Max.X)))
	s.height = s.origin.Y + margin + vg.Length(math.Ceil(float64(box.Max.Y)))
}

// titleBounds is the room of the title, over the middle of the map.
func (s *heatMap) titleBounds() vg.Rectangle {
	style := titleText()
	half := style.Width(s.title) / 2
	middle := s.area.Max.X / 2
	return vg.Rectangle{
		Min: vg.Point{X: middle - half, Y: s.area.Max.Y + 2*textGap},
		Max: vg.Point{X: middle + half, Y: s.area.Max.Y + 2*textGap + style.Height(s.title)},
	}
}

func union(a, b vg.Rectangle) vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: min(a.Min.X, b.Min.X), Y: min(a.Min.Y, b.Min.Y)},
		Max: vg.Point{X: max(a.Max.X, b.Max.X), Y: max(a.Max.Y, b.Max.Y)},
	}
}

func (s *heatMap) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c.Translate(s.origin)
	drawFramed(c, s.area, s.raster.image(s.colors))
	drawFramed(c, s.bar, s.barImage())
	drawFramed(c, s.hole, image.NewUniform(notFinite))
	for _, r := range s.axes {
		r.draw(c)
	}
	style := titleText()
	style.XAlign = draw.XCenter
	c.FillText(style, vg.Point{X: s.area.Max.X / 2, Y: s.area.Max.Y + 2*textGap}, s.title)
}

// barImage runs through the colours along the longer side of the bar, upwards
// or to the right. Of a constant field it shows the one colour that there is.
func (s *heatMap) barImage() image.Image {
	size := s.bar.Size()
	width, height := int(size.X)*pixelsPerPoint, int(size.Y)*pixelsPerPoint
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	values := s.raster.values
	for y := range height {
		for x := range width {
			at := (float64(x) + 0.5) / float64(width)
			if height > width {
				at = 1 - (float64(y)+0.5)/float64(height)
			}
			img.SetRGBA(x, y, s.raster.color(s.colors, values.lo*(1-at)+values.hi*at))
		}
	}
	return img
}

// drawFramed draws an image and a line around it; nothing in an area of no size.
func drawFramed(c draw.Canvas, area vg.Rectangle, img image.Image) {
	if area.Size() == (vg.Point{}) {
		return
	}
	if _, plain := img.(*image.Uniform); plain {
		c.SetColor(img.At(0, 0))
		c.Fill(area.Path())
	} else {
		c.DrawImage(area, img)
	}
	corners := []vg.Point{area.Min, {X: area.Max.X, Y: area.Min.Y}, area.Max, {X: area.Min.X, Y: area.Max.Y}}
	c.StrokeLines(ink(), append(corners, area.Min))
}
