package plot

import (
	"image"
	"image/color"
	"math"
)

// A raster is a picture's plane brought to the pixels that it will cover.
type raster struct {
	width, height int
	means         []float64 // x fastest, y up; NaN where a point is not finite
	values        span      // of the finite points; empty where there are none
	holes         bool      // whether some point is not finite
}

// newRaster gives each pixel the mean of the points under it or, where points
// are larger than pixels, the point that it lies in. Every point is looked at.
func newRaster(p *Picture, width, height int) *raster {
	r := &raster{
		width:  width,
		height: height,
		means:  make([]float64, width*height),
		values: span{math.Inf(1), math.Inf(-1)},
	}
	at := p.at()
	for y := range height {
		row := r.means[y*width : (y+1)*width]
		y0, y1 := under(y, height, p.NY)
		for x := range width {
			x0, x1 := under(x, width, p.NX)
			row[x] = r.mean(at, x0, x1, y0, y1)
		}
	}
	return r
}

// under is the range [lo, hi) of n points that lie under one of so many pixels.
func under(pixel, pixels, n int) (lo, hi int) {
	lo, hi = pixel*n/pixels, (pixel+1)*n/pixels
	return lo, max(hi, lo+1)
}

// mean averages over a block of points and widens the span of values by them.
// Each point is scaled before it is added, so that the sum cannot overflow.
func (r *raster) mean(at func(ix, iy int) float64, x0, x1, y0, y1 int) float64 {
	scale := 1 / float64((x1-x0)*(y1-y0))
	mean, values := 0.0, r.values
	for iy := y0; iy < y1; iy++ {
		for ix := x0; ix < x1; ix++ {
			v := at(ix, iy)
			if v-v != 0 { // NaN or infinite
				r.holes = true
				mean = math.NaN()
				continue
			}
			mean += v * scale
			values.lo, values.hi = min(values.lo, v), max(values.hi, v)
		}
	}
	r.values = values
	return mean
}

// image colours the pixels; row 0 of an image is its top.
func (r *raster) image(colors []color.RGBA) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, r.width, r.height))
	for y := range r.height {
		for x := range r.width {
			img.SetRGBA(x, r.height-1-y, r.color(colors, r.means[y*r.width+x]))
		}
	}
	return img
}

func (r *raster) color(colors []color.RGBA, v float64) color.RGBA {
	if math.IsNaN(v) {
		return notFinite
	}
	last := len(colors) - 1
	return colors[min(max(0, int(r.values.fraction(v)*float64(last)+0.5)), last)]
}
