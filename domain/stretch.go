package domain

import (
	"iter"
	"slices"
)

// A stretch is what a part of a cut, or some parts side by side, have along one axis: a number of points, and whether
// somebody else has those below and above. A cut has few kinds of stretches, however many parts it has: what holds for
// each part, and what a part has at most, is found by a look at these.
type stretch struct {
	length       int
	below, above bool
}

// stretches returns the kinds of blocks of so many parts of an axis. Where there is but one block, on a periodic axis
// it has itself for a neighbour if alone says so.
func stretches(points, parts, block int, periodic, alone bool) (kinds []stretch) {
	blocks := parts / block
	last, mixed := blocks-1, points%parts/block // the block of which some parts are longer than others
	around := periodic && (blocks > 1 || alone)
	for _, i := range [...]int{0, 1, mixed - 1, mixed, mixed + 1, last - 1, last} {
		if i < 0 || i > last {
			continue
		}
		lo, _ := part(points, parts, i*block)
		_, hi := part(points, parts, (i+1)*block-1)
		if s := (stretch{hi - lo, i > 0 || around, i < last || around}); !slices.Contains(kinds, s) {
			kinds = append(kinds, s)
		}
	}
	return kinds
}

// piece is a kind of part, or of block of parts: a stretch of each axis.
type piece [3]stretch

// pieces yields all kinds that a cut has. There are kinds where no axis is cut into more parts than it has
// points.
func pieces(g Grid, parts, block Vec, alone bool) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		var axes [3][]stretch
		for a := range axes {
			if parts[a] > g.Size[a] {
				return
			}
			axes[a] = stretches(g.Size[a], parts[a], block[a], g.Periodic[a], alone)
		}
		for _, x := range axes[0] {
			for _, y := range axes[1] {
				for _, z := range axes[2] {
					if !yield(piece{x, y, z}) {
						return
					}
				}
			}
		}
	}
}

// points returns how many the piece has.
func (p piece) points() int64 { return Vec{p[0].length, p[1].length, p[2].length}.Product() }

// faces yields, for each direction in which somebody else has points, how many points of the piece these are.
func (p piece) faces(dims int, w Radius) iter.Seq2[Direction, int64] {
	return func(yield func(Direction, int64) bool) {
		for _, dir := range Faces(dims) {
			a := dir.Axis()
			if has := p[a].below && !dir.Positive() || p[a].above && dir.Positive(); !has {
				continue
			}
			layers := min(sendLayers(dir, a, w), p[a].length)
			if !yield(dir, p.points()/int64(p[a].length)*int64(layers)) {
				return
			}
		}
	}
}

// wide reports whether the piece owns the layers that its neighbours need of it.
func (p piece) wide(dims int, w Radius) bool {
	for _, dir := range Faces(dims) {
		a := dir.Axis()
		if has := p[a].below && !dir.Positive() || p[a].above && dir.Positive(); has &&
			p[a].length < sendLayers(dir, a, w) {
			return false
		}
	}
	return true
}

// sized is what the subdomains of a cut have at most.
type sized struct {
	largest int64   // points
	cost    float64 // of a step
}

// sizes returns what the subdomains of a cut have at most. ok is false where some axis has fewer points than parts, or
// some subdomain fewer layers than its neighbours need.
func sizes(g Grid, parts Vec, w Radius) (s sized, ok bool) {
	if w.check() != nil {
		return s, false
	}
	for p := range pieces(g, parts, Vec{1, 1, 1}, true) {
		if !p.wide(g.Dims, w) {
			return s, false
		}
		s.largest, s.cost, ok = max(s.largest, p.points()), max(s.cost, p.cost(g.Dims, w)), true
	}
	return s, ok
}

// cost returns the cost of a step of a subdomain, which sweeps its points and sends its messages.
func (p piece) cost(dims int, w Radius) float64 {
	sum := sweepCost * float64(p.points())
	for dir, points := range p.faces(dims, w) {
		sum += messageCost + float64(points)*axisCost(dir.Axis(), dims)
	}
	return sum
}
