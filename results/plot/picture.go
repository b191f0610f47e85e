package plot

import (
	"errors"
	"fmt"
	"math"
)

// A Picture is a plane of NX by NY points to be drawn as a heat map. Point
// (ix, iy) lies at X0 + ix*DX, Y0 + iy*DY and colours the cell around it; y
// points up. The values come from Values, where x runs fastest, or from At,
// which may be asked for any point, any number of times; one of them is set.
type Picture struct {
	Title, XLabel, YLabel string // none where empty

	NX, NY int
	Values []float64
	At     func(ix, iy int) float64

	X0, Y0 float64 // position of point (0, 0)
	DX, DY float64 // spacing, above zero
}

func (p *Picture) check() error {
	if p.NX < 1 || p.NY < 1 {
		return fmt.Errorf("its size is %d x %d points, want at least 1 x 1", p.NX, p.NY)
	}
	if (p.Values == nil) == (p.At == nil) {
		return errors.New("it needs either Values or At")
	}
	if p.Values != nil && len(p.Values) != p.NX*p.NY {
		return fmt.Errorf("it has %d values, want %d x %d", len(p.Values), p.NX, p.NY)
	}
	if p.DX <= 0 || p.DY <= 0 {
		return fmt.Errorf("its spacing is %g, %g, want above zero", p.DX, p.DY)
	}
	for _, side := range []span{p.spanX(), p.spanY()} {
		if length := side.hi - side.lo; math.IsInf(length, 0) || math.IsNaN(length) || length <= 0 {
			return fmt.Errorf("an axis from %g to %g cannot be drawn", side.lo, side.hi)
		}
	}
	return nil
}

// spanX and spanY reach half a spacing past the outermost points.
func (p *Picture) spanX() span { return cells(p.X0, p.DX, p.NX) }
func (p *Picture) spanY() span { return cells(p.Y0, p.DY, p.NY) }

func cells(origin, spacing float64, n int) span {
	lo := origin - spacing/2
	return span{lo, lo + float64(n)*spacing}
}

// at returns how to look up a value.
func (p *Picture) at() func(ix, iy int) float64 {
	if p.At != nil {
		return p.At
	}
	return func(ix, iy int) float64 { return p.Values[iy*p.NX+ix] }
}
