package temporal

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
)

// pointsPass is a pass of a point function on a host device, by its Go twin. As hostPass it takes tile by tile, and each from one end of the
// last axis to the other, in layers. Rings of layers hold the levels between, with ghosts behind walls.
type pointsPass struct {
	*Points
	rows   *sweep.Rows
	of     sweep.Arrays
	sides  []*Sides // of each field
	box    domain.Box
	depth  int
	axis   int // along which it goes
	ring   int // layers
	slot   func(layer int) int
	tiles  []pointsTile
	places [][]int64 // by field and level, from 1: where its ring begins in the room, in bytes
	fill   []ghostFiller
}

// pointsTile is a tile, and how the rings of each field lie in it: the axis of layers is that of the ring.
type pointsTile struct {
	box     domain.Box
	layouts []domain.Layout
}

// onHost makes a pass ready on a host device.
func (p *Points) onHost(name string, arrays sweep.Arrays, box domain.Box, sides []Sides, depth int) (*sweep.Launch, error) {
	h, err := p.newPass(arrays, box, sides, depth, domain.Vec{})
	if err != nil {
		return nil, err
	}
	spec := p.spec(name, arrays)
	spec.Argument, spec.RunWith = p.body.FrameArgument(), h.run
	k, err := p.device.NewKernel(spec)
	if err != nil {
		return nil, err
	}
	return p.body.Launch(k, 0), nil
}

// newPass returns a pass over a box; tile is how many points a tile stores along each axis, 0 for what the cache has room for.
func (p *Points) newPass(arrays sweep.Arrays, box domain.Box, sides []Sides, depth int, tile domain.Vec) (*pointsPass, error) {
	h := &pointsPass{Points: p, of: arrays, box: box, depth: depth, axis: p.dims - 1}
	h.ring = p.radius.Minus[h.axis] + 2*p.radius.Plus[h.axis] + 1
	h.slot = func(layer int) int { return ((layer % h.ring) + h.ring) % h.ring }
	for _, f := range p.fields {
		h.sides = append(h.sides, p.sidesOf(sides, f))
		h.fill = append(h.fill, newFiller(p.arrays[f.to].Element))
	}
	longest := 1
	for _, b := range tilesOf(box, h.tileSize(tile), h.axis) {
		t, err := h.newTile(b)
		if err != nil {
			return nil, err
		}
		h.tiles = append(h.tiles, t)
		longest = max(longest, h.region(b, 1).Size()[0])
	}
	h.rows = p.body.Rows(longest)
	return h, p.makeRoom(h.findPlaces())
}

// tileSize chooses tiles as those of a hostPass.
func (h *pointsPass) tileSize(tile domain.Vec) domain.Vec {
	const shortRow = 512
	bytes, around := 0, domain.Vec{}
	for _, f := range h.fields {
		bytes += h.arrays[f.to].Element.Size()
	}
	for a := range around {
		around[a] = h.depth * (h.radius.Minus[a] + h.radius.Plus[a])
	}
	budget := cacheBytes[h.dims] / max(1, bytes*h.ring*(h.depth-1)) // points of a layer of a tile
	size := h.box.Size()
	if tile[0] == 0 {
		tile[0] = max(1, budget-around[0])
		if h.axis == 2 {
			tile[0] = shortRow
		}
	}
	tile[0] = evenly(size[0], tile[0])
	if tile[1] == 0 {
		tile[1] = max(4*h.depth, budget/(tile[0]+around[0])-around[1])
	}
	tile[1] = evenly(size[1], tile[1])
	return tile
}

// newTile lays the rings of a tile out.
func (h *pointsPass) newTile(box domain.Box) (t pointsTile, err error) {
	t.box = box
	all := h.region(box, 1).Grow(h.radius)
	all.Lo[h.axis], all.Hi[h.axis] = 0, h.ring
	for _, f := range h.fields {
		l, err := domain.NewLayout(all, domain.Radius{}, h.arrays[f.to].Element.Size())
		if err != nil {
			return t, err
		}
		t.layouts = append(t.layouts, l)
	}
	return t, nil
}

// findPlaces gives each ring its place, and returns the bytes of all.
func (h *pointsPass) findPlaces() (bytes int64) {
	for f := range h.fields {
		most := int64(0)
		for _, t := range h.tiles {
			most = max(most, t.layouts[f].Bytes())
		}
		places := make([]int64, h.depth)
		for l := 1; l < h.depth; l++ {
			places[l] = bytes
			bytes += most
		}
		h.places = append(h.places, places)
	}
	return bytes
}

// region returns the points of a level that a tile needs.
func (h *pointsPass) region(tile domain.Box, l int) domain.Box {
	for a := range h.dims {
		tile.Lo[a] -= (h.depth - l) * h.radius.Minus[a]
		tile.Hi[a] += (h.depth - l) * h.radius.Plus[a]
		if h.sides[0].low(a) != Open {
			tile.Lo[a] = max(tile.Lo[a], h.box.Lo[a])
		}
		if h.sides[0].high(a) != Open {
			tile.Hi[a] = min(tile.Hi[a], h.box.Hi[a])
		}
	}
	return tile
}

// run makes the pass, with the frame of the launch. A level follows the one before as soon as that has the layers that it reads.
func (h *pointsPass) run(frame []byte) {
	h.rows.Begin(frame)
	for i := range h.constant {
		a := h.arrays[h.constant[i]]
		h.rows.Use(a.Access, a.Component, h.array(h.of, h.constant[i]), nil)
	}
	behind := h.radius.Plus[h.axis]
	for i := range h.tiles {
		t := &h.tiles[i]
		first := h.region(t.box, 1)
		for q := first.Lo[h.axis]; q < first.Hi[h.axis]+(h.depth-1)*behind; q++ {
			for l := 1; l <= h.depth; l++ {
				region := h.region(t.box, l)
				if at := q - (l-1)*behind; region.Lo[h.axis] <= at && at < region.Hi[h.axis] {
					h.compute(t, region, l, at)
				}
			}
		}
	}
}

// level returns the ring of a level of a field.
func (h *pointsPass) level(t *pointsTile, f, l int) kernels.Array {
	return kernels.Array{Data: h.room.Span(h.places[f][l], t.layouts[f].Bytes()), Layout: t.layouts[f]}
}

// compute computes a layer of a level, and the ghosts that follow from it.
func (h *pointsPass) compute(t *pointsTile, region domain.Box, l, at int) {
	h.rows.Later(l - 1)
	for i := range h.fields {
		f := &h.fields[i]
		for _, read := range f.reads {
			if a := &h.arrays[read]; l == 1 {
				h.rows.Use(a.Access, a.Component, h.array(h.of, read), nil)
			} else {
				h.rows.Use(a.Access, a.Component, h.level(t, i, l-1), h.slot)
			}
		}
		if a := &h.arrays[f.to]; l == h.depth {
			h.rows.Use(a.Access, a.Component, h.array(h.of, f.to), nil)
		} else {
			h.rows.Use(a.Access, a.Component, h.level(t, i, l), h.slot)
		}
	}
	p := region.Lo
	p[h.axis] = at
	h.rows.Compute(p, region.Hi[0]-region.Lo[0])
	if h.axis == 2 {
		for p[1]++; p[1] < region.Hi[1]; p[1]++ {
			h.rows.Compute(p, region.Hi[0]-region.Lo[0])
		}
	}
	if l < h.depth {
		for f := range h.fields {
			h.ghosts(t, region, f, l, at)
		}
	}
}

// ghosts sets the ghosts of a field at a level that follow from a layer: beside it, those behind the first layers that it is mirrored in, and all
// behind the last.
func (h *pointsPass) ghosts(t *pointsTile, region domain.Box, f, l, at int) {
	lo, hi, r, sides := h.box.Lo[h.axis], h.box.Hi[h.axis], h.fields[f].radius, h.sides[f]
	g := ghostLayers{pass: h, field: f, points: region, all: region, values: h.level(t, f, l)}
	for a := range h.axis {
		if region.Lo[a] == h.box.Lo[a] && sides.low(a) != Open {
			g.all.Lo[a] -= r.Minus[a]
		}
		if region.Hi[a] == h.box.Hi[a] && sides.high(a) != Open {
			g.all.Hi[a] += r.Plus[a]
		}
	}
	if g.all != region {
		h.fill[f].set(&g, at)
	}
	if n := at - lo; sides.low(h.axis) != Open && n < r.Minus[h.axis] {
		deepest := n
		if at == hi-1 {
			deepest = r.Minus[h.axis] - 1
		}
		for ; n <= deepest; n++ {
			h.fill[f].set(&g, lo-1-n)
		}
	}
	if at == hi-1 && sides.high(h.axis) != Open {
		for n := range r.Plus[h.axis] {
			h.fill[f].set(&g, hi+n)
		}
	}
}

// ghostLayers are layers of a level of a field with ghosts.
type ghostLayers struct {
	pass        *pointsPass
	field       int
	points, all domain.Box // of a layer
	values      kernels.Array
}

// ghostFiller sets the ghosts of a layer, which may be one of ghosts.
type ghostFiller interface{ set(g *ghostLayers, at int) }

// newFiller returns one for elements of a type.
func newFiller(e sweep.Element) ghostFiller {
	switch {
	case e == "float64":
		return fillerOf[float64]{func(face, before float64) float64 { return float64(2*face) - before }}
	case e == "float32":
		return fillerOf[float32]{func(face, before float32) float32 { return float32(2*face) - before }}
	case e.Size() == 8:
		return fillerOf[uint64]{}
	case e.Size() == 4:
		return fillerOf[uint32]{}
	case e.Size() == 2:
		return fillerOf[uint16]{}
	}
	return fillerOf[uint8]{}
}

// fillerOf is one for elements that are stored as T. odd is twice a face less what is before it, nil for elements that have none.
type fillerOf[T any] struct{ odd func(face, before T) T }

// ghostSource is what a ghost follows from.
type ghostSource struct {
	at    domain.Vec
	fixed bool // it keeps the value that level 0 has there
	odd   int  // the axis along which it is odd about the face, -1 for none
}

// source returns that of a place. See Side.
func (g *ghostLayers) source(at domain.Vec) ghostSource {
	h := g.pass
	s, sides := ghostSource{at: at, odd: -1}, h.sides[g.field]
	for a := range h.dims {
		lo, hi := h.box.Lo[a], h.box.Hi[a]
		side, n := sides.low(a), lo-1-at[a]
		if at[a] >= hi {
			side, n = sides.high(a), at[a]-hi
		}
		if n < 0 || side == Open {
			continue
		}
		switch layer, ok := side.source(n); {
		case ok && at[a] < lo:
			s.at[a] = lo + layer
		case ok:
			s.at[a] = hi - 1 - layer
		case side == Odd && n > 0:
			s.odd = a
		default:
			s.fixed = true
		}
	}
	return s
}

// set sets the ghosts of a layer.
func (x fillerOf[T]) set(g *ghostLayers, at int) {
	h := g.pass
	to, from := values[T](g.values), values[T](h.array(h.of, h.fields[g.field].from))
	p := g.all.Lo
	p[h.axis] = at
	last := p[1] + 1
	if h.axis == 2 {
		last = g.all.Hi[1]
	}
	for ; p[1] < last; p[1]++ {
		inside := h.box.Lo[h.axis] <= at && at < h.box.Hi[h.axis] && (h.axis == 1 || g.points.Lo[1] <= p[1] && p[1] < g.points.Hi[1])
		x.points(g, to, from, p, g.all.Lo[0], g.points.Lo[0])
		if !inside {
			x.row(g, to, from, p)
		}
		x.points(g, to, from, p, g.points.Hi[0], g.all.Hi[0])
	}
}

// place is where a point of a level lies in its ring.
func (g *ghostLayers) place(p domain.Vec) int64 {
	p[g.pass.axis] = g.pass.slot(p[g.pass.axis])
	return g.values.Layout.Offset(p)
}

// memory is where a point of level 0 lies.
func (g *ghostLayers) memory(p domain.Vec) int64 {
	return g.pass.array(g.pass.of, g.pass.fields[g.field].from).Layout.Offset(p)
}

// points sets the ghosts of a row from one x to another, one by one.
func (x fillerOf[T]) points(g *ghostLayers, to, from []T, p domain.Vec, lo, hi int) {
	for p[0] = lo; p[0] < hi; p[0]++ {
		to[g.place(p)] = x.value(g, to, from, p)
	}
}

// row sets a row of ghosts none of which lies behind a wall along x.
func (x fillerOf[T]) row(g *ghostLayers, to, from []T, p domain.Vec) {
	p[0] = g.points.Lo[0]
	n := int64(g.points.Hi[0] - p[0])
	switch s := g.source(p); {
	case s.fixed:
		o := g.memory(s.at)
		copy(to[g.place(p):][:n], from[o:o+n])
	case s.odd >= 0:
		x.points(g, to, from, p, p[0], g.points.Hi[0])
	default:
		o := g.place(s.at)
		copy(to[g.place(p):][:n], to[o:o+n])
	}
}

// value is that of a point or ghost of the level.
func (x fillerOf[T]) value(g *ghostLayers, to, from []T, p domain.Vec) T {
	switch s := g.source(p); {
	case s.fixed:
		return from[g.memory(s.at)]
	case s.odd >= 0:
		inward := domain.Vec{}
		if inward[s.odd] = 1; s.at[s.odd] >= g.pass.box.Hi[s.odd] {
			inward[s.odd] = -1
		}
		face := s.at.Add(inward)
		return x.odd(x.value(g, to, from, face), x.value(g, to, from, face.Add(inward)))
	default:
		return to[g.place(s.at)]
	}
}
