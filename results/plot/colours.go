package plot

import (
	"image/color"

	"gonum.org/v1/plot/palette/moreland"
)

// colours are those of Okabe and Ito (2008), which colour-blind readers can
// tell apart too, and grey.
var colours = [...]color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x00, 0x00, 0xff},
	{0x80, 0x80, 0x80, 0xff},
}

// grey is the colour of bounds.
const grey = len(colours) - 1

// notFinite is a grey, which the colours of values never are.
var notFinite = color.RGBA{R: 0x9a, G: 0x9a, B: 0x9a, A: 0xff}

// viridis is a scale of n colours from dark violet to yellow whose lightness
// grows evenly, also to a colour-blind eye and in print without colours.
func viridis(n int) []color.RGBA {
	scale, err := moreland.NewLuminance([]color.Color{
		rgb(0x440154), rgb(0x481a6c), rgb(0x472f7d), rgb(0x414487),
		rgb(0x39568c), rgb(0x31688e), rgb(0x2a788e), rgb(0x23888e),
		rgb(0x1f988b), rgb(0x22a884), rgb(0x35b779), rgb(0x54c568),
		rgb(0x7ad151), rgb(0xa5db36), rgb(0xd2e21b), rgb(0xfde725),
	})
	if err != nil {
		panic(err) // the colours above grow in lightness
	}
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
