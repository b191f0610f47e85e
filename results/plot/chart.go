package plot

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Chart is laid out and drawn by [Write]. [New] and [Timeline] make charts; [Curves] and
// [Panels] are charts too.
type Chart interface {
	check() error
	size() (width, height vg.Length)
	draw(c draw.Canvas)
}
