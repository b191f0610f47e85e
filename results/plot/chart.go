package plot

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Chart is a plot of numbers: [Curves], [bars], [Panels] or [matrix].
type Chart interface {
	check() error
	size() (width, height vg.Length)
	draw(c draw.Canvas)
}
