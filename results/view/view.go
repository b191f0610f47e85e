// Package view draws fields: planes as heat maps, lines as curves, and films of several fields.
package view

import (
	"math"

	"github.com/halox/halox/results/plot"
)

// Chart draws a field: the plane of Options.Slice, or a curve along a line. A field of one dimension is a curve. A line
// is "x", an axis through the middle of the others; y=0.5,z=16, positions on all other axes; or 0,0,0:1,1,1, two points
// in coordinates, between whose nearest points values are interpolated.
func Chart(f *Field, o Options) (plot.Chart, error) {
	if f.dims() == 1 || o.Line != "" {
		return Curves([]*Field{f}, o)
	}
	return Picture(f, o)
}

// Film draws a number of fields one after another, all in one range: that of the options, or of all fields, which are
// then opened twice.
func Film(fields int, open func(index int) (*Field, error), o Options) (plot.Film, error) {
	chart := func(i int) (plot.Chart, error) {
		f, err := open(i)
		if err != nil {
			return nil, err
		}
		return Chart(f, o)
	}
	all := plot.Range{Lo: math.NaN(), Hi: math.NaN()}
	for i := 0; i < fields && (o.Range == nil || math.IsNaN(o.Range.Hi-o.Range.Lo)); i++ {
		c, err := chart(i)
		if err != nil {
			return plot.Film{}, err
		}
		switch c := c.(type) {
		case plot.Picture:
			all = all.Join(c.Span())
		case plot.Curves:
			all = all.Join(c.Span())
		}
	}
	if o.Range != nil {
		all = o.Range.Or(all)
	}
	if o.Range = nil; all.Lo < all.Hi {
		o.Range = &all
	}
	return plot.Film{Frames: fields, Frame: chart}, nil
}
