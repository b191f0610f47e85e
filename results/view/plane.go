package view

import "github.com/halox/halox/domain"

// chunkPoints is the number of points that are read at once.
const chunkPoints = 1 << 22

// plane is what a picture shows: one layer of the grid across an axis. A grid of two dimensions is one layer across z.
type plane struct {
	box        domain.Box // its points
	across, up int        // the axes of the picture
}

func newPlane(g domain.Grid, axis, index int) plane {
	p := plane{box: g.Box(), across: 0, up: 1}
	p.box.Lo[axis], p.box.Hi[axis] = index, index+1
	switch axis {
	case 0:
		p.across, p.up = 1, 2
	case 1:
		p.up = 2
	}
	return p
}

// line returns the points along an axis through a point.
func line(g domain.Grid, axis int, through domain.Vec) plane {
	p := plane{across: axis, up: (axis + 1) % 3}
	p.box.Lo, p.box.Hi = through, through.Add(domain.Vec{1, 1, 1})
	p.box.Lo[axis], p.box.Hi[axis] = 0, g.Size[axis]
	return p
}

// lines returns the points of the lines [from, to), counted upwards.
func (p plane) lines(from, to int) domain.Box {
	box := p.box
	box.Lo[p.up], box.Hi[p.up] = p.box.Lo[p.up]+from, p.box.Lo[p.up]+to
	return box
}

// mosaic is a plane in cells, each the mean of a block of points. All blocks
// together cover the plane, and no two of them differ by more than one point
// a side.
type mosaic struct {
	across, up tiling
	means      []float64 // the lowest row first
}

// readMosaic averages the plane down to at most that many cells across and up. It reads a part of the plane at a time.
func readMosaic(p plane, across, up int, read func(dst []float64, box domain.Box) error) (*mosaic, error) {
	size := p.box.Size()
	m := &mosaic{across: newTiling(size[p.across], across), up: newTiling(size[p.up], up)}
	m.means = make([]float64, m.across.cells*m.up.cells)
	nx, ny := m.across.points, m.up.points
	lines := max(1, chunkPoints/nx)
	values := make([]float64, nx*min(lines, ny))
	for y := 0; y < ny; y += lines {
		end := min(y+lines, ny)
		if err := read(values[:nx*(end-y)], p.lines(y, end)); err != nil {
			return nil, err
		}
		for line := y; line < end; line++ {
			m.add(line, values[nx*(line-y):][:nx])
		}
	}
	return m, nil
}

// add adds a line of points to the means of the cells that it runs through.
// Each point is scaled before, so that the sum cannot overflow.
func (m *mosaic) add(line int, values []float64) {
	row := m.up.cell(line)
	bottom, top := m.up.block(row)
	means := m.means[row*m.across.cells:][:m.across.cells]
	for i := range means {
		left, right := m.across.block(i)
		scale := 1 / float64((right-left)*(top-bottom))
		for _, v := range values[left:right] {
			means[i] += v * scale
		}
	}
}

// tiling shares out the points of an axis among cells.
type tiling struct{ points, cells int }

func newTiling(points, most int) tiling { return tiling{points, min(points, most)} }

// block returns the points [lo, hi) of a cell.
func (t tiling) block(cell int) (lo, hi int) {
	return cell * t.points / t.cells, (cell + 1) * t.points / t.cells
}

// cell returns the cell whose block has the point.
func (t tiling) cell(point int) int { return ((point+1)*t.cells - 1) / t.points }

// axis returns where the first cell lies, and how far apart cells are, where
// that of the points is known. The cells reach as far as the points' own do.
func (t tiling) axis(first, spacing float64) (origin, step float64) {
	step = spacing * float64(t.points) / float64(t.cells)
	return first + (step-spacing)/2, step
}
