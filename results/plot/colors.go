package plot

import (
	"image"
	"image/color"
	"slices"

	scales "gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
)

// colorMaps are the scales of colors of pictures. The first is the default.
var colorMaps = []struct {
	name      string
	of        func() scales.ColorMap
	diverging bool // the color in the middle stands for 0
}{
	{"viridis", viridis, false},
	{"black-body", moreland.BlackBody, false},
	{"blue-red", func() scales.ColorMap { return moreland.SmoothBlueRed() }, true},
}

// ColorMaps returns the names of the scales of colors, the default first. That of blue-red diverges from 0, so that its
// range is symmetric unless it is set.
func ColorMaps() (names []string) {
	for _, m := range colorMaps {
		names = append(names, m.name)
	}
	return names
}

// colorMap returns the index of a scale of colors, -1 for an unknown name; "" is the default.
func colorMap(name string) int {
	if name == "" {
		return 0
	}
	return slices.Index(ColorMaps(), name)
}

// viridis is a scale of colors from dark violet to yellow with evenly increasing lightness, also for color-blind
// readers and in print without colors.
func viridis() scales.ColorMap {
	scale, err := moreland.NewLuminance([]color.Color{
		rgb(0x440154), rgb(0x481a6c), rgb(0x472f7d), rgb(0x414487),
		rgb(0x39568c), rgb(0x31688e), rgb(0x2a788e), rgb(0x23888e),
		rgb(0x1f988b), rgb(0x22a884), rgb(0x35b779), rgb(0x54c568),
		rgb(0x7ad151), rgb(0xa5db36), rgb(0xd2e21b), rgb(0xfde725),
	})
	if err != nil {
		panic(err) // the colors above increase in lightness
	}
	return scale
}

// shades returns n colors of a scale, from its lowest to its highest.
func shades(of, n int) []color.RGBA {
	scale := colorMaps[of].of()
	scale.SetMin(0)
	scale.SetMax(1)
	colors := make([]color.RGBA, n)
	for i := range colors {
		c, err := scale.At(float64(i) / float64(n-1))
		if err != nil {
			panic(err) // the fraction is in [0, 1]
		}
		colors[i] = color.RGBAModel.Convert(c).(color.RGBA)
	}
	return colors
}

func rgb(code uint32) color.Color {
	return color.RGBA{R: uint8(code >> 16), G: uint8(code >> 8), B: uint8(code), A: 0xff}
}

// scaleShades is the number of colors of a scale in pictures.
const scaleShades = 192

// transparent is the last color of an indexer.
const transparent = 255

// An indexer reduces pictures to 256 colors, which makes their files several times smaller.
type indexer struct {
	colors color.Palette
	known  map[color.RGBA]uint8
}

// newIndexer returns an indexer for the colors of charts on white: those of curves, grays and, for a chart with a scale
// of colors, the scale, which leaves fewer for the edges of lines.
func newIndexer(scale string) indexer {
	all := color.Palette{notFinite}
	grays, mixes := 72, 26
	if i := colorMap(scale); scale != "" {
		for _, c := range shades(i, scaleShades) {
			all = append(all, c)
		}
		grays, mixes = 27, 5
	}
	for i := range grays {
		v := uint8(i * 255 / (grays - 1))
		all = append(all, color.RGBA{v, v, v, 0xff})
	}
	for _, c := range palette[:gray-1] { // black is a gray
		for i := range mixes {
			mix := func(v uint8) uint8 { return uint8((int(v)*(mixes-i) + 0xff*i) / mixes) }
			all = append(all, color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff})
		}
	}
	return indexer{append(all, color.RGBA{}), map[color.RGBA]uint8{}}
}

// paletted returns a picture with the nearest colors.
func (x indexer) paletted(img *image.RGBA) *image.Paletted {
	small := image.NewPaletted(img.Rect, x.colors)
	for i := range small.Pix {
		c := color.RGBA{img.Pix[4*i], img.Pix[4*i+1], img.Pix[4*i+2], img.Pix[4*i+3]}
		index, ok := x.known[c]
		if !ok {
			index = uint8(x.colors[:transparent].Index(c))
			x.known[c] = index
		}
		small.Pix[i] = index
	}
	return small
}
