package view

import "github.com/halox/halox/results/plot"

// Picture draws a plane of a field of two or three dimensions, with the values of its boundary where they are known.
// Cells of more points than a picture can show are averaged.
func Picture(f *Field, o Options) (plot.Picture, error) { return picture(f, o, 0, 0) }

// picture draws a plane in at most so many cells; 0 for all that can be shown.
func picture(f *Field, o Options, width, height int) (plot.Picture, error) {
	axis, index, err := o.Plane(f)
	if err != nil {
		return plot.Picture{}, err
	}
	p := newPlane(f.Grid, axis, index)
	size := p.box.Size()
	if width == 0 {
		width, height = plot.PixelsOf(
			float64(size[p.across])*f.spacing(p.across), float64(size[p.up])*f.spacing(p.up))
	}
	m, err := readMosaic(p, width, height, f.Read)
	if err != nil {
		return plot.Picture{}, err
	}
	where := ""
	if f.dims() == 3 {
		where = f.where(axis, index)
	}
	picture := plot.Picture{
		Title: o.title(f, where), XLabel: f.axisTitle(p.across), YLabel: f.axisTitle(p.up), Label: o.label(f),
		NX: m.across.cells, NY: m.up.cells, Values: m.means, Colors: o.Colors, Range: o.Range,
	}
	picture.X0, picture.DX = m.across.axis(f.at(p.across, 0), f.spacing(p.across))
	picture.Y0, picture.DY = m.up.axis(f.at(p.up, 0), f.spacing(p.up))
	for i := range picture.Sides {
		along, cells := p.across, m.up
		if i/2 == 1 {
			along, cells = p.up, m.across
		}
		picture.Sides[i] = f.side(p, along, i%2, cells)
	}
	return picture, nil
}

// side returns the values of the boundary at an end of an axis, in the cells along the other axis of a plane.
func (f *Field) side(p plane, axis, end int, cells tiling) (s plot.Side) {
	if f.Wall == nil {
		return s
	}
	value, distance := f.Wall(axis, end)
	if s.Width = (distance - 0.5) * f.spacing(axis); value == nil || !(s.Width > 0) {
		return plot.Side{}
	}
	at, other := p.box.Lo, p.across+p.up-axis
	at[axis] = end * (f.Grid.Size[axis] - 1)
	for cell := range cells.cells {
		lo, hi := cells.block(cell)
		at[other] = (lo + hi - 1) / 2
		s.Values = append(s.Values, value(at))
	}
	return s
}
