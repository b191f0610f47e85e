package domain

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Subdomain is the box of points that one device owns.
type Subdomain struct {
	Rank  int // its place in Decomposition.Subdomains
	Coord Vec // its place among the parts, an axis each
	Box   Box // owned points, global indices
}

// Decomposition is a grid cut into Parts[0] x Parts[1] x Parts[2] subdomains.
// Ranks run fastest along x, then y, then z.
type Decomposition struct {
	Grid       Grid
	Parts      Vec
	Subdomains []Subdomain
}

// Decompose cuts the grid. Along an axis of n points in p parts the first
// n mod p parts own one point more than the others. It is an error to cut an
// axis into fewer than one or more parts than it has points, and a grid into more
// than 2^16.
func Decompose(g Grid, parts Vec) (*Decomposition, error) {
	for a, p := range parts {
		if p < 1 || p > g.Size[a] {
			return nil, fmt.Errorf("domain: %d points on axis %c cannot be cut into %d parts",
				g.Size[a], "xyz"[a], p)
		}
	}
	if parts.Product() > maxParts {
		return nil, fmt.Errorf("domain: %v parts: a grid is cut into up to %d", g.along(parts), maxParts)
	}
	d := &Decomposition{Grid: g, Parts: parts}
	for rank := range int(parts.Product()) {
		c := Vec{rank % parts[0], rank / parts[0] % parts[1], rank / parts[0] / parts[1]}
		s := Subdomain{Rank: rank, Coord: c}
		for a := range c {
			s.Box.Lo[a], s.Box.Hi[a] = part(g.Size[a], parts[a], c[a])
		}
		d.Subdomains = append(d.Subdomains, s)
	}
	return d, nil
}

// maxParts is how many subdomains a grid may have.
const maxParts = 1 << 16

// part returns the range of points that part i of p gets of n.
func part(n, p, i int) (lo, hi int) {
	base, rest := n/p, n%p
	lo = i*base + min(i, rest)
	hi = lo + base
	if i < rest {
		hi++
	}
	return lo, hi
}

// Staggered returns the cut of a field that lies between the points of the grid
// along the given axes. Between physical faces such a field has one point more than the
// grid, and the last part along the axis owns it; along a periodic axis it has as
// many as the grid.
func (d *Decomposition) Staggered(axes [3]bool) *Decomposition {
	s := &Decomposition{Grid: d.Grid, Parts: d.Parts, Subdomains: slices.Clone(d.Subdomains)}
	for a, staggered := range axes {
		if !staggered || a >= d.Grid.Dims || d.Grid.Periodic[a] {
			continue
		}
		s.Grid.Size[a]++
		for i := range s.Subdomains {
			if s.Subdomains[i].Coord[a] == d.Parts[a]-1 {
				s.Subdomains[i].Box.Hi[a]++
			}
		}
	}
	return s
}

// Neighbour returns the rank of the subdomain next to rank in direction dir,
// around the periodic axes. A subdomain alone on a periodic axis is its own
// neighbour. At a physical face there is none and ok is false.
func (d *Decomposition) Neighbour(rank int, dir Direction) (neighbour int, ok bool) {
	c := d.Subdomains[rank].Coord
	for a := range c {
		c[a] += dir[a]
		if c[a] >= 0 && c[a] < d.Parts[a] {
			continue
		}
		if !d.Grid.Periodic[a] {
			return 0, false
		}
		c[a] = (c[a] + d.Parts[a]) % d.Parts[a]
	}
	return c[0] + d.Parts[0]*(c[1]+d.Parts[1]*c[2]), true
}

// CheckWidth returns an error if w is negative, or some subdomain owns fewer layers than a
// neighbour's ghost region of width w needs of it. A physical face needs nothing.
func (d *Decomposition) CheckWidth(w Radius) error {
	if err := w.check(); err != nil {
		return err
	}
	for _, s := range d.Subdomains {
		for _, dir := range Faces(d.Grid.Dims) {
			if _, ok := d.Neighbour(s.Rank, dir); !ok {
				continue
			}
			a := dir.Axis()
			have, need := s.Box.Size()[a], sendLayers(dir, a, w)
			if have < need {
				do := fmt.Sprintf("use fewer parts than %d or a larger grid", d.Parts[a])
				switch {
				case d.Parts[a] == 1 || d.Grid.Periodic[a] && d.Grid.Size[a] < need:
					do = "use a larger grid"
				case d.Parts[a] == 2:
					do = "use 1 part or a larger grid"
				}
				return fmt.Errorf("domain: subdomain %d owns %d layers along %c, its neighbour in %v needs %d: %s",
					s.Rank, have, "xyz"[a], dir, need, do)
			}
		}
	}
	return nil
}

// Grown returns the box of a subdomain, grown by so many layers towards neighbours, and not
// beyond physical faces.
func (d *Decomposition) Grown(rank int, by Radius) Box {
	for _, side := range Faces(3) {
		if _, ok := d.Neighbour(rank, side); ok {
			continue
		}
		if side.Positive() {
			by.Plus[side.Axis()] = 0
		} else {
			by.Minus[side.Axis()] = 0
		}
	}
	return d.Subdomains[rank].Box.Grow(by)
}

// maxImbalance is how many times the points of the best balanced cut the largest
// subdomain of another may own.
const maxImbalance = 1.1

// AutoParts returns the cut of the grid into n subdomains under which the busiest of
// them has the cheapest step: its sweep, and its messages in a face exchange of
// width w. Cuts whose largest subdomain owns over 10% more points than that of the best
// balanced cut are left out. Among equals it is the one that cuts the slowest axis
// most. It is an error if no cut gives every subdomain the layers that its neighbours
// need.
func AutoParts(g Grid, n int, w Radius) (Vec, error) {
	if n < 1 || n > maxParts {
		return Vec{}, fmt.Errorf("domain: cannot cut a grid into %d parts, must be between 1 and %d", n, maxParts)
	}
	_, parts, ok := bestCut(g, 1, n, w)
	switch {
	case ok:
		return parts, nil
	case n == 1:
		return Vec{}, fmt.Errorf("domain: %v points are fewer layers than ghosts around a periodic axis need",
			g.along(g.Size))
	}
	return Vec{}, fmt.Errorf("domain: no cut of %v points into %d parts leaves each the layers its neighbours need",
		g.along(g.Size), n)
}

// NestedParts returns the cut of a grid over hosts, and of what each of them gets over its
// devices, equally many on each. The grid is cut into the products of the two, axis by axis,
// and the device of coordinates c belongs to the host of coordinates c / inner.
//
// It is the cut under which the host that sends most sends least in a face exchange of width w to
// other hosts, over the slowest links; among those it is that of AutoParts. Cuts whose largest
// subdomain owns over 10% more points than that of the best balanced cut are left out. It is an
// error if no cut gives every subdomain the layers that its neighbours need.
func NestedParts(g Grid, hosts, devices int, w Radius) (outer, inner Vec, err error) {
	if hosts < 1 || devices < 1 || int64(hosts)*int64(devices) > maxNested {
		return outer, inner, fmt.Errorf(
			"domain: cannot cut a grid over %d hosts of %d devices: the number of parts must be between 1 and %d",
			hosts, devices, maxNested)
	}
	outer, inner, ok := bestCut(g, hosts, devices, w)
	if !ok {
		return outer, inner, fmt.Errorf(
			"domain: no cut of %v points over %d hosts of %d devices leaves each the layers its neighbours need",
			g.along(g.Size), hosts, devices)
	}
	return outer, inner, nil
}

// bestCut returns the cut that NestedParts describes, over hosts and over the devices of each; ok is false if
// there is none. A single host sends nothing to others, so only the cost of a step counts for it.
func bestCut(g Grid, hosts, devices int, w Radius) (outer, inner Vec, ok bool) {
	type candidate struct {
		outer, inner Vec
		sized
		between int64 // points that a host sends to others, at most
	}
	var all []candidate
	balanced := int64(math.MaxInt64)
	for _, outer := range factors(hosts) {
		for _, inner := range factors(devices) {
			parts := Vec{outer[0] * inner[0], outer[1] * inner[1], outer[2] * inner[2]}
			if s, ok := sizes(g, parts, w); ok {
				all = append(all, candidate{outer, inner, s, between(g, parts, inner, w)})
				balanced = min(balanced, s.largest)
			}
		}
	}
	var best candidate
	for _, c := range all {
		if float64(c.largest) > maxImbalance*float64(balanced) {
			continue
		}
		if !ok || c.between < best.between || c.between == best.between && c.cost < best.cost {
			best, ok = c, true
		}
	}
	return best.outer, best.inner, ok
}

// NestedAs returns a given cut as one over hosts and over the devices of each, where subdomains go to hosts in the
// order of their ranks, to each as many as it has devices. It is an error if those of a host make no box, or if the cut
// does not leave each subdomain the layers that its neighbours need.
func NestedAs(g Grid, parts Vec, devices int, w Radius) (outer, inner Vec, err error) {
	ok := min(parts[0], parts[1], parts[2]) > 0
	if ok {
		_, ok = sizes(g, parts, w)
	}
	if !ok {
		return outer, inner, fmt.Errorf(
			"domain: a cut of %v points into %v parts does not leave each the layers its neighbours need",
			g.along(g.Size), g.along(parts))
	}
	left := devices // of a host, that are not yet along an axis
	for a, n := range parts {
		inner[a] = max(1, min(n, left))
		outer[a] = n / inner[a]
		if n%inner[a] != 0 || left%inner[a] != 0 {
			break
		}
		left /= inner[a]
	}
	if left != 1 {
		return outer, inner, fmt.Errorf(
			"domain: a cut into %v parts gives hosts of %d devices, in the order of their ranks, no boxes",
			g.along(parts), devices)
	}
	return outer, inner, nil
}

// maxNested is how many parts NestedParts cuts a grid into. They are more than a Decomposition has, for machines that
// are planned.
const maxNested = 1 << 24

// factors returns the ways to write n as a product of three numbers, those first that cut the
// slowest axis most.
func factors(n int) (all []Vec) {
	for x := 1; x <= n; x++ {
		for y := 1; n%x == 0 && y <= n/x; y++ {
			if n/x%y == 0 {
				all = append(all, Vec{x, y, n / x / y})
			}
		}
	}
	return all
}

// between returns how many points the host that sends most sends others, where each host has
// inner subdomains along each axis.
func between(g Grid, parts, inner Vec, w Radius) (most int64) {
	for host := range pieces(g, parts, inner, false) {
		sent := int64(0)
		for _, points := range host.faces(g.Dims, w) {
			sent += points
		}
		most = max(most, sent)
	}
	return most
}

// BlockOf returns the coordinates of the host whose subdomains, inner along each axis, have one
// of the given coordinates.
func BlockOf(coord, inner Vec) Vec {
	return Vec{coord[0] / inner[0], coord[1] / inner[1], coord[2] / inner[2]}
}

// What a step costs in AutoParts, in units of points copied in one piece.
// Measured on NVLink, a message takes 5 us before its first byte arrives, in
// which a GPU sends some 2^18 doubles and sweeps four times as many points. Faces
// of the slowest axis travel as they lie; the others are packed and unpacked,
// those across rows with one useful element a transaction.
const (
	sweepCost      = 0.25
	messageCost    = 1 << 18
	contiguousCost = 1
	packedCost     = 3
	stridedCost    = 6
)

// axisCost is that of a point of a message along an axis.
func axisCost(axis, dims int) float64 {
	switch axis {
	case dims - 1:
		return contiguousCost
	case 0:
		return stridedCost
	}
	return packedCost
}

// A stretch is what a part of a cut, or some parts side by side, have along one axis: a number of points, and whether
// another part has those below and above. A cut has few kinds of stretches, however many parts it has: what holds for
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

// hasNeighbour reports whether the points next to the piece in a direction belong to another.
func (p piece) hasNeighbour(face Direction) bool {
	if s := p[face.Axis()]; face.Positive() {
		return s.above
	} else {
		return s.below
	}
}

// faces yields, for each direction in which another piece has points, how many points of the piece these are.
func (p piece) faces(dims int, w Radius) iter.Seq2[Direction, int64] {
	return func(yield func(Direction, int64) bool) {
		for _, dir := range Faces(dims) {
			if !p.hasNeighbour(dir) {
				continue
			}
			a := dir.Axis()
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
		if a := dir.Axis(); p.hasNeighbour(dir) && p[a].length < sendLayers(dir, a, w) {
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
