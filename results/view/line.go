package view

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/results/plot"
)

const (
	curvePoints = 1 << 13 // points of a curve that are drawn at most; more are averaged
	maxCurves   = 12      // curves of one chart
)

// Curves draws a line of one field or several, see Chart, with gaps where values are not finite. Several curves are
// named by the moments of their fields.
func Curves(all []*Field, o Options) (plot.Chart, error) {
	if len(all) > maxCurves {
		return nil, fmt.Errorf("must be at most %d curves, got %d: draw a film", maxCurves, len(all))
	}
	c := plot.Curves{LinearX: true, LinearY: true, Narrow: true, RangeY: o.Range, YLabel: o.label(all[0])}
	for i, f := range all {
		p, err := f.profile(o.Line)
		if err != nil {
			return nil, err
		}
		name := ""
		if len(all) > 1 {
			name = f.Moment
		}
		c.Curves = append(c.Curves, plot.Gapped(name, p.x, p.values)...)
		if c.XLabel = p.title; i == 0 {
			of := *f
			if len(all) > 1 {
				of.Moment = ""
			}
			c.Title = o.title(&of, p.where)
		}
	}
	if len(c.Curves) == 0 {
		return nil, errors.New("no value is finite")
	}
	return c, nil
}

// profile is the values along a line.
type profile struct {
	x, values []float64
	title     string // of the axis
	where     string
}

// profile reads a line; "" is x.
func (f *Field) profile(text string) (*profile, error) {
	var p *profile
	axis, through, err := f.axisLine(text)
	switch from, to, between := strings.Cut(text, ":"); {
	case between:
		p, err = f.between(from, to)
	case err == nil:
		p, err = f.along(axis, through)
	}
	if err != nil {
		return nil, fmt.Errorf("line: %w", err)
	}
	return p, nil
}

// axisLine parses a line along an axis, and returns a point on it.
func (f *Field) axisLine(text string) (axis int, through domain.Vec, err error) {
	for a, n := range f.Grid.Size {
		through[a] = n / 2
	}
	if axis = strings.Index("xyz"[:f.dims()], text); len(text) <= 1 && axis >= 0 {
		return axis, through, nil
	}
	fixed := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if !strings.Contains(text, "=") {
			break
		}
		a, index, err := f.position(part)
		if err != nil {
			return 0, through, err
		}
		fixed[a], through[a] = true, index
	}
	if len(fixed) != f.dims()-1 {
		return 0, through, fmt.Errorf(
			"must be an axis, or a position on all other axes, such as y=0.5,z=16, got %q", text)
	}
	for axis = 0; fixed[axis]; axis++ {
	}
	return axis, through, nil
}

// along reads the points along an axis through a point, and adds the values of the boundary.
func (f *Field) along(axis int, through domain.Vec) (*profile, error) {
	m, err := readMosaic(line(f.Grid, axis, through), curvePoints, 1, f.Read)
	if err != nil {
		return nil, err
	}
	p := &profile{title: f.axisTitle(axis)}
	for a := range f.dims() {
		if a != axis {
			p.where += ", " + f.where(a, through[a])
		}
	}
	p.where = strings.TrimPrefix(p.where, ", ")
	x, dx := m.across.axis(f.at(axis, 0), f.spacing(axis))
	for i, v := range m.means {
		p.x, p.values = append(p.x, x+float64(i)*dx), append(p.values, v)
	}
	for end := 0; end < 2 && f.Wall != nil; end++ {
		value, distance := f.Wall(axis, end)
		if value == nil {
			continue
		}
		through[axis] = end * (f.Grid.Size[axis] - 1)
		x, v := f.at(axis, through[axis])+distance*f.spacing(axis)*float64(2*end-1), value(through)
		if end == 0 {
			p.x, p.values = append([]float64{x}, p.x...), append([]float64{v}, p.values...)
		} else {
			p.x, p.values = append(p.x, x), append(p.values, v)
		}
	}
	return p, nil
}

// between interpolates values between two points, about two per spacing.
func (f *Field) between(from, to string) (*profile, error) {
	var ends [2][3]float64
	var coordinates [2][]float64
	for i, text := range []string{from, to} {
		parts := strings.Split(text, ",")
		if len(parts) != f.dims() {
			return nil, fmt.Errorf("points must have %d coordinates, got %q", f.dims(), text)
		}
		for axis, part := range parts {
			v, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return nil, fmt.Errorf("coordinates must be numbers, got %q", part)
			}
			if ends[i][axis], err = f.place(axis, v); err != nil {
				return nil, fmt.Errorf("%w, got %s", err, text)
			}
			coordinates[i] = append(coordinates[i], v)
		}
	}
	p, longest, length := &profile{title: "distance", where: fmt.Sprintf("from (%s) to (%s)", from, to)}, 0.0, 0.0
	for axis := range f.dims() {
		longest = max(longest, math.Abs(ends[1][axis]-ends[0][axis]))
		length = math.Hypot(length, coordinates[1][axis]-coordinates[0][axis])
	}
	if length == 0 {
		return nil, fmt.Errorf("must be two points, got %s twice", from)
	}
	n := min(max(2, int(2*longest)), curvePoints/8)
	for i := range n + 1 {
		part, at := float64(i)/float64(n), [3]float64{}
		for axis := range at {
			at[axis] = ends[0][axis]*(1-part) + ends[1][axis]*part
		}
		v, err := f.interpolate(at)
		if err != nil {
			return nil, err
		}
		p.x, p.values = append(p.x, part*length), append(p.values, v)
	}
	return p, nil
}

// interpolate returns the value at indices between points, linear along each axis, and constant beyond the outermost
// points.
func (f *Field) interpolate(at [3]float64) (float64, error) {
	var box domain.Box
	var weights [3][2]float64
	for axis, n := range f.Grid.Size {
		v := min(max(0, at[axis]), float64(n-1))
		lo := min(int(v), max(0, n-2))
		box.Lo[axis], box.Hi[axis] = lo, min(lo+2, n)
		weights[axis] = [2]float64{1 - (v - float64(lo)), v - float64(lo)}
	}
	values := make([]float64, box.Points())
	if err := f.Read(values, box); err != nil {
		return 0, err
	}
	size, sum := box.Size(), 0.0
	for i, v := range values {
		w := weights[0][i%size[0]] * weights[1][i/size[0]%size[1]] * weights[2][i/(size[0]*size[1])]
		if w > 0 { // the value may not be finite
			sum += w * v
		}
	}
	return sum, nil
}
