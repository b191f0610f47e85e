package temporal

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// hostPass is a pass on a host device. It takes tile by tile, and each from one end of the last axis to the other, in layers: planes, or
// rows in two dimensions. As soon as a level has the layers that a layer of the next one reads, that one is computed, so that the
// levels of a tile stay in the caches of its core.
type hostPass[T rows.Float] struct {
	stencil  stencil.Stencil
	star     stencil.StarWeights
	isStar   bool
	radius   domain.Vec
	axis     int // along which it goes
	sides    Sides
	from, to []T
	src, dst domain.Layout
	box      domain.Box
	depth    int
	tiles    []domain.Box
	norms    normsOnHost
	walls    [6]hostWall[T]

	sum     rows.Sum[T] // of a stencil that is no star: its offsets are those of the layers at hand
	offsets [][]domain.Vec
	levels  []level[T] // from 1 to depth-1
	room    []T        // all their layers; passes of one device, which run one after the other, share it
	rooms   int        // of how many points
}

// level is the newest layers of a level, in a ring.
type level[T rows.Float] struct {
	ring  []int    // where each layer begins
	fixed [2][]int // those behind the ends of the axis that keep their values
	odd   [2]int   // room for one behind each end that follows from two
}

// cacheBytes is how much the levels of a tile may take of the caches of a core: in two dimensions of its own, in three
// of the last one, where long rows pay.
var cacheBytes = [...]int{2: 1 << 19, 3: 1 << 22}

// newHostPass returns a pass over a box; tile is how many points a tile stores along each axis, 0 for what the cache has room for.
func newHostPass[T rows.Float](s stencil.Stencil, sides Sides, from, to []T, src, dst domain.Layout, box domain.Box, depth int, tile domain.Vec) *hostPass[T] {
	h := &hostPass[T]{stencil: s, sides: sides, from: from, to: to, src: src, dst: dst, box: box, depth: depth, axis: s.Dims - 1}
	h.star, h.isStar = s.AsStar()
	for a := range s.Dims {
		h.radius[a] = s.AxisRadius(a)
	}
	h.sum.Centre = T(s.Centre)
	for _, g := range s.Groups {
		group := rows.Group[T]{Weight: T(g.Weight)}
		for _, part := range g.Parts {
			group.Parts = append(group.Parts, make([]int, len(part)))
			h.offsets = append(h.offsets, part)
		}
		h.sum.Groups = append(h.sum.Groups, group)
	}
	h.tiles = tilesOf(box, h.tileSize(tile), h.axis)
	h.makeRoom()
	return h
}

// tileSize chooses tiles of whole rows where a row is short, else of a part, and as many rows as there is room for.
func (h *hostPass[T]) tileSize(tile domain.Vec) domain.Vec {
	const shortRow = 512
	var zero T
	size, around := h.box.Size(), 2*(h.depth-1)
	budget := cacheBytes[h.stencil.Dims] / int(sizeOf(zero)) / max(1, h.depth-1) / (2*h.radius[h.axis] + 1) // points of a layer of a tile
	if tile[0] == 0 {
		tile[0] = max(1, budget-(around+2)*h.radius[0])
		if h.axis == 2 {
			tile[0] = shortRow
		}
	}
	tile[0] = evenly(size[0], tile[0])
	if tile[1] == 0 {
		row := tile[0] + (around+2)*h.radius[0]
		tile[1] = max(4*h.depth, budget/row-(around+2)*h.radius[1])
	}
	tile[1] = evenly(size[1], tile[1])
	return tile
}

// evenly divides n into equal parts of at most so many, the last maybe less.
func evenly(n, most int) int {
	parts := (n + most - 1) / max(1, most)
	return (n + parts - 1) / max(1, parts)
}

func sizeOf[T rows.Float](v T) int64 {
	if _, ok := any(v).(float32); ok {
		return 4
	}
	return 8
}

// tilesOf cuts a box into tiles, none across the axis.
func tilesOf(box domain.Box, size domain.Vec, axis int) (all []domain.Box) {
	for a := axis; a < len(size); a++ {
		size[a] = box.Size()[a]
	}
	for y := box.Lo[1]; y < box.Hi[1]; y += max(1, size[1]) {
		for x := box.Lo[0]; x < box.Hi[0]; x += max(1, size[0]) {
			all = append(all, domain.Box{Lo: domain.Vec{x, y, box.Lo[2]},
				Hi: domain.Vec{min(x+size[0], box.Hi[0]), min(y+size[1], box.Hi[1]), box.Hi[2]}})
		}
	}
	return all
}

// layer returns the points of a layer of the largest level of a tile, with ghosts behind walls.
func (h *hostPass[T]) layer(tile domain.Box) domain.Box {
	b := h.sides.region(h.box, tile, h.depth-1, h.radius).Grow(domain.Radius{Minus: h.radius, Plus: h.radius})
	b.Lo[h.axis], b.Hi[h.axis] = 0, 1
	return b
}

// layerPoints is how many points the largest layer of a tile has.
func (h *hostPass[T]) layerPoints() (points int) {
	for _, t := range h.tiles {
		points = max(points, int(h.layer(t).Points()))
	}
	return points
}

func (h *hostPass[T]) makeRoom() {
	points := h.layerPoints()
	n, r := 0, h.radius[h.axis]
	take := func(count int) (places []int) {
		for range count {
			places = append(places, n)
			n += points
		}
		return places
	}
	fixed := [2][]int{take(r), take(r)}
	odd := [2]int{take(1)[0], take(1)[0]}
	for range h.depth - 1 {
		h.levels = append(h.levels, level[T]{ring: take(2*r + 1), fixed: fixed, odd: odd})
	}
	h.rooms = n
}

// run makes the pass.
func (h *hostPass[T]) run() {
	for _, tile := range h.tiles {
		h.keepFixed(tile)
		first := h.region(tile, 1)
		r, a := h.radius[h.axis], h.axis
		for q := first.Lo[a]; q < first.Hi[a]+(h.depth-1)*r; q++ {
			for l := 1; l <= h.depth; l++ {
				region := h.region(tile, l)
				if at := q - (l-1)*r; region.Lo[a] <= at && at < region.Hi[a] {
					h.compute(tile, l, at)
				}
			}
		}
	}
}

// region returns the points of a level that a tile needs.
func (h *hostPass[T]) region(tile domain.Box, l int) domain.Box {
	return h.sides.region(h.box, tile, h.depth-l, h.radius)
}

// keepFixed copies the layers behind the ends of the axis that keep their values.
func (h *hostPass[T]) keepFixed(tile domain.Box) {
	layer := h.layer(tile)
	if h.depth < 2 {
		return
	}
	for end, side := range [2]Side{h.sides.low(h.axis), h.sides.high(h.axis)} {
		if side != Fixed && side != Odd {
			continue
		}
		for n, to := range h.levels[0].fixed[end] {
			at := h.box.Lo[h.axis] - 1 - n
			if end == 1 {
				at = h.box.Hi[h.axis] + n
			}
			h.copyGhosts(h.held(layer), to, layer, at)
		}
	}
	h.keepMoving(layer)
}

// held is what of a layer the array holds: that a level needs.
func (h *hostPass[T]) held(layer domain.Box) domain.Box {
	all := h.src.Owned.Grow(h.src.Width)
	for a := range h.axis {
		layer.Lo[a], layer.Hi[a] = max(layer.Lo[a], all.Lo[a]), min(layer.Hi[a], all.Hi[a])
	}
	return layer
}

// copyGhosts copies points of level 0 into a layer of the room that begins at to and whose points are those of layer; at is its place along the axis.
func (h *hostPass[T]) copyGhosts(points domain.Box, to int, layer domain.Box, at int) {
	size := layer.Size()
	rowsOf(points, h.axis, func(y int) {
		n := points.Hi[0] - points.Lo[0]
		if n <= 0 {
			return
		}
		p := domain.Vec{points.Lo[0], y, 0}
		o := to + points.Lo[0] - layer.Lo[0]
		if h.axis == 2 {
			o += (y - layer.Lo[1]) * size[0]
		}
		p[h.axis] = at
		i := h.src.Offset(p)
		copy(h.room[o:o+n], h.from[i:i+int64(n)])
	})
}

// rowsOf calls f for the rows of a layer, once in two dimensions.
func rowsOf(layer domain.Box, axis int, f func(y int)) {
	if axis == 1 {
		f(0)
		return
	}
	for y := layer.Lo[1]; y < layer.Hi[1]; y++ {
		f(y)
	}
}

// compute computes layer at of a level, and its ghosts behind walls.
func (h *hostPass[T]) compute(tile domain.Box, l, at int) {
	region, layer := h.region(tile, l), h.layer(tile)
	in := h.input(tile, l-1, at, layer)
	out, place, pitch := h.to, int64(0), h.dst.Pitch
	if l < h.depth {
		out, pitch = h.room, int64(layer.Size()[0])
		place = int64(h.levels[l-1].place(at))
	}
	points := region.Hi[0] - region.Lo[0]
	first := true
	rowsOf(region, h.axis, func(y int) {
		o := place + int64(region.Lo[0]-layer.Lo[0])
		if h.axis == 2 {
			o += int64(y-layer.Lo[1]) * pitch
		}
		p := domain.Vec{region.Lo[0], y, 0}
		p[h.axis] = at
		if l == h.depth {
			o = h.dst.Offset(p)
		}
		i := in.place
		if l > 1 {
			i += int64(region.Lo[0] - layer.Lo[0])
			if h.axis == 2 {
				i += int64(y-layer.Lo[1]) * in.pitch
			}
		} else {
			i = h.src.Offset(p)
		}
		if k := h.depth - l; k < len(h.norms.of) {
			h.sweep(out[o:], in, i, rows.Band{Points: points, Count: 1, Pitch: points})
			if first, n := h.norms.columns(tile, region.Lo[0], region.Hi[0], h.axis, y, at); n > 0 {
				rows.AddRow(&h.norms.of[k], out[o+int64(first):][:n], in.values[i+int64(first):][:n], h.norms.mode)
			}
			return
		}
		count := 1
		if pitch == in.pitch && h.axis == 2 {
			if !first {
				return
			}
			count, first = region.Hi[1]-region.Lo[1], false
		}
		h.sweep(out[o:], in, i, rows.Band{Points: points, Count: count, Pitch: int(max(pitch, int64(points)))})
	})
	if l < h.depth {
		h.ghosts(region, layer, l, at)
	}
}

// place is where a layer of the level lies.
func (l *level[T]) place(at int) int {
	n := len(l.ring)
	return l.ring[((at%n)+n)%n]
}

// input is what a layer is computed from: the place of its own in the level before, how far apart rows are, and where each of
// the layers around begins, from the radius before to the radius behind, relative to it.
type input[T rows.Float] struct {
	values []T
	place  int64
	pitch  int64
	layers [2*maxRadius + 1]int64
}

// maxRadius is how far stencils may reach.
const maxRadius = 4

// input finds the layers around one in a level.
func (h *hostPass[T]) input(tile domain.Box, l, at int, layer domain.Box) (in input[T]) {
	r := h.radius[h.axis]
	if l == 0 {
		in.values, in.pitch = h.from, h.src.Pitch
		apart := h.src.Plane
		if h.axis == 1 {
			apart = h.src.Pitch
		}
		for d := -r; d <= r; d++ {
			in.layers[d+maxRadius] = int64(d) * apart
		}
		return in
	}
	in.values, in.pitch = h.room, int64(layer.Size()[0])
	held := &h.levels[l-1]
	in.place = int64(held.place(at))
	for d := -r; d <= r; d++ {
		in.layers[d+maxRadius] = int64(h.placeOf(held, at+d, layer)) - in.place
	}
	return in
}

// placeOf returns where a layer of a level begins, which may lie behind a wall.
func (h *hostPass[T]) placeOf(held *level[T], at int, layer domain.Box) int {
	lo, hi := h.box.Lo[h.axis], h.box.Hi[h.axis]
	side, n, end, before := h.sides.low(h.axis), lo-1-at, 0, func(n int) int { return lo + n }
	if at >= hi {
		side, n, end, before = h.sides.high(h.axis), at-hi, 1, func(n int) int { return hi - 1 - n }
	}
	if n < 0 || side == Open {
		return held.place(at)
	}
	if layer, ok := side.source(n); ok {
		return held.place(before(layer))
	}
	if side == Odd && n > 0 {
		h.reflect(held.odd[end], held.fixed[end][0], held.place(before(0)), int(layer.Points()))
		return held.odd[end]
	}
	return held.fixed[end][n]
}

// reflect sets points to twice a face's less those before it.
func (h *hostPass[T]) reflect(to, face, before, points int) {
	out, f, b := h.room[to:to+points], h.room[face:face+points], h.room[before:before+points]
	for i := range out {
		out[i] = T(2*f[i]) - b[i]
	}
}

// sweep applies the stencil to a band whose first point is in.values[i] in the level before.
func (h *hostPass[T]) sweep(out []T, in input[T], i int64, band rows.Band) {
	v, below, above := in.values, in.layers[maxRadius-1], in.layers[maxRadius+1]
	s := &h.star
	switch {
	case h.isStar && s.Dims == 2 && s.Equal:
		rows.Star5(out, v[i-1:], v[i+below:], v[i+above:], band, T(s.Centre), T(s.Axis[0]))
	case h.isStar && s.Dims == 2:
		rows.Star5Axes(out, v[i-1:], v[i+below:], v[i+above:], band, T(s.Centre), T(s.Axis[0]), T(s.Axis[1]))
	case h.isStar && s.Equal:
		rows.Star7(out, v[i-1:], v[i-in.pitch:], v[i+in.pitch:], v[i+below:], v[i+above:], band, T(s.Centre), T(s.Axis[0]))
	case h.isStar:
		rows.Star7Axes(out, v[i-1:], v[i-in.pitch:], v[i+in.pitch:], v[i+below:], v[i+above:], band, T(s.Centre), T(s.Axis[0]), T(s.Axis[1]), T(s.Axis[2]))
	default:
		h.setOffsets(in)
		rows.Apply(out, v, int(i), band, h.sum)
	}
}

// setOffsets has the sum read the layers at hand.
func (h *hostPass[T]) setOffsets(in input[T]) {
	n := 0
	for _, g := range h.sum.Groups {
		for _, part := range g.Parts {
			for i, o := range h.offsets[n] {
				row := int64(0)
				if h.axis == 2 {
					row = int64(o[1]) * in.pitch
				}
				part[i] = o[0] + int(row+in.layers[o[h.axis]+maxRadius])
			}
			n++
		}
	}
}

// ghosts sets what lies behind walls beside a layer of a level: first what keeps its values, as in memory; then the others, along x and along y.
func (h *hostPass[T]) ghosts(region, layer domain.Box, l, at int) {
	place := h.levels[l-1].place(at)
	pitch := layer.Size()[0]
	all := h.held(layer)
	for a := range h.axis {
		for end, side := range [2]Side{h.sides.low(a), h.sides.high(a)} {
			ghosts, ok := h.behind(region, all, a, end)
			if ok && (side == Fixed || side == Odd) {
				h.copyGhosts(ghosts, place, layer, at)
				h.copyWall(2*a+end, l, place, layer, at)
			}
		}
	}
	// What is before and behind one point along an axis.
	for a := range h.axis {
		for end, side := range [2]Side{h.sides.low(a), h.sides.high(a)} {
			ghosts, ok := h.behind(region, all, a, end)
			if !ok || side == Fixed {
				continue
			}
			other := 1 - a
			if h.axis == 2 {
				ghosts.Lo[other], ghosts.Hi[other] = region.Lo[other], region.Hi[other]
				if a == 1 { // with what lies behind x, but not what keeps its values
					ghosts.Lo[0], ghosts.Hi[0] = h.mirrored(region)
				}
			}
			for n := range h.radius[a] {
				h.set(ghosts, region, layer, place, pitch, a, end, n, side)
			}
		}
	}
}

// mirrored returns the range of x of a region with the ghosts that follow from points.
func (h *hostPass[T]) mirrored(region domain.Box) (lo, hi int) {
	lo, hi = region.Lo[0], region.Hi[0]
	if side := h.sides.low(0); side > Fixed && lo == h.box.Lo[0] {
		lo -= h.radius[0]
	}
	if side := h.sides.high(0); side > Fixed && hi == h.box.Hi[0] {
		hi += h.radius[0]
	}
	return lo, hi
}

// behind returns the ghosts behind a wall that the region ends at.
func (h *hostPass[T]) behind(region, all domain.Box, a, end int) (ghosts domain.Box, ok bool) {
	ghosts = all
	if end == 0 {
		ghosts.Lo[a], ghosts.Hi[a] = h.box.Lo[a]-h.radius[a], h.box.Lo[a]
		return ghosts, h.sides.low(a) != Open && region.Lo[a] == h.box.Lo[a]
	}
	ghosts.Lo[a], ghosts.Hi[a] = h.box.Hi[a], h.box.Hi[a]+h.radius[a]
	return ghosts, h.sides.high(a) != Open && region.Hi[a] == h.box.Hi[a]
}

// set sets the n-th layer behind a wall from the points before it.
func (h *hostPass[T]) set(ghosts, region, layer domain.Box, place, pitch, a, end, n int, side Side) {
	before, inward := h.box.Lo[a], 1
	if end == 1 {
		before, inward = h.box.Hi[a]-1, -1
	}
	source, ok := side.source(n)
	if !ok && n == 0 {
		return // the first layer of an odd side keeps its values
	}
	step := 1
	if a == 1 {
		step = pitch
	}
	ghost := before - inward*(n+1)
	from := ghost + inward*(n+1+source)
	b := ghosts
	b.Lo[a], b.Hi[a] = ghost, ghost+1
	rowsOf(b, h.axis, func(y int) {
		o := place + b.Lo[0] - layer.Lo[0]
		if h.axis == 2 {
			o += (y - layer.Lo[1]) * pitch
		}
		row := h.room[o : o+b.Hi[0]-b.Lo[0]]
		d := (from - ghost) * step
		for i := range row {
			if ok {
				row[i] = h.room[o+i+d]
			} else {
				row[i] = T(2*h.room[o+i+inward*step]) - h.room[o+i+2*inward*step]
			}
		}
	})
}

// hostWall is a wall on a host device.
type hostWall[T rows.Float] struct {
	box    domain.Box
	values []T // nil where it does not move
}

// setWalls makes room for layers of ghosts that differ from level to level.
func (h *hostPass[T]) setWalls(walls *Walls) {
	for i := range walls {
		w := &walls[i]
		if !w.moves() {
			continue
		}
		h.walls[i] = hostWall[T]{w.Box, launch.Values[T](w.Values)}
		if i/2 != h.axis {
			continue
		}
		for l := range h.levels {
			fixed := append([]int(nil), h.levels[l].fixed[i%2]...)
			fixed[0] = h.rooms
			h.rooms += h.layerPoints()
			h.levels[l].fixed[i%2] = fixed
		}
	}
}

// keepMoving copies the layers behind the ends of the axis that differ from level to level.
func (h *hostPass[T]) keepMoving(layer domain.Box) {
	for end := range 2 {
		side := 2*h.axis + end
		for l := range h.levels {
			h.copyWall(side, l+1, h.levels[l].fixed[end][0], layer, h.walls[side].box.Lo[h.axis])
		}
	}
}

// copyWall copies what a wall has at a level, in layer at along the axis, into a layer of the room that begins at to.
func (h *hostPass[T]) copyWall(side, level, to int, layer domain.Box, at int) {
	w := &h.walls[side]
	if w.values == nil || at < w.box.Lo[h.axis] || at >= w.box.Hi[h.axis] {
		return
	}
	b, size := w.box, w.box.Size()
	for a := range h.axis {
		b.Lo[a], b.Hi[a] = max(b.Lo[a], layer.Lo[a]), min(b.Hi[a], layer.Hi[a])
	}
	n := b.Hi[0] - b.Lo[0]
	if n <= 0 {
		return
	}
	rowsOf(b, h.axis, func(y int) {
		p := domain.Vec{b.Lo[0], y, w.box.Lo[2]}
		o := to + b.Lo[0] - layer.Lo[0]
		if h.axis == 2 {
			o += (y - layer.Lo[1]) * layer.Size()[0]
		}
		p[h.axis] = at
		p = p.Sub(w.box.Lo)
		i := p[0] + size[0]*(p[1]+size[1]*(p[2]+size[2]*(level-1)))
		copy(h.room[o:o+n], w.values[i:i+n])
	})
}
