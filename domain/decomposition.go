package domain

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Subdomain is the box of points that one device owns.
type Subdomain struct {
	Rank  int // index into Decomposition.Subdomains
	Coord Vec // coordinates among the parts, per axis
	Box   Box // owned points, in global indices
}

// Decomposition divides a grid into Parts[0] x Parts[1] x Parts[2] subdomains. Ranks increase fastest along x,
// then y, then z.
type Decomposition struct {
	Grid       Grid        // the whole grid
	Parts      Vec         // number of parts per axis, each at least 1
	Subdomains []Subdomain // one per part, in the order of their ranks
}

// Decompose divides the grid into parts. Along an axis of n points in p parts the first n mod p parts own one
// point more than the others. It returns an error if an axis gets fewer than one part or more parts than points,
// or the grid more than 2^16 parts.
func Decompose(g Grid, parts Vec) (*Decomposition, error) {
	for a, p := range parts {
		if p < 1 || p > g.Size[a] {
			return nil, fmt.Errorf("domain: parts along %[2]c: must be between 1 and %[1]d, got %[3]d",
				g.Size[a], "xyz"[a], p)
		}
	}
	if parts.Product() > maxParts {
		return nil, fmt.Errorf("domain: parts %v: product must be at most %d", g.along(parts), maxParts)
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

// maxParts is the largest number of subdomains of a grid.
const maxParts = 1 << 16

// part returns the half-open range of part i when n points are divided into p parts.
func part(n, p, i int) (lo, hi int) {
	base, rest := n/p, n%p
	lo = i*base + min(i, rest)
	hi = lo + base
	if i < rest {
		hi++
	}
	return lo, hi
}

// Staggered returns the decomposition of a field that is staggered along the given axes: its points are midway
// between those of the grid. Between physical faces such a field has one point more than the grid, and the last
// part along the axis owns it. Along a periodic axis it has as many points as the grid.
func (d *Decomposition) Staggered(axes []bool) *Decomposition {
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

// Neighbor returns the rank of the subdomain next to rank in direction dir, wrapping around periodic axes. The
// only part along a periodic axis is its own neighbor. At a physical face there is no neighbor and ok is false.
func (d *Decomposition) Neighbor(rank int, dir Direction) (neighbor int, ok bool) {
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

// CheckWidth returns an error if w is negative, or if a subdomain owns fewer layers than the ghost region of width
// w of a neighbor needs. Physical faces need no layers.
func (d *Decomposition) CheckWidth(w Radius) error {
	if err := w.check(); err != nil {
		return err
	}
	for _, s := range d.Subdomains {
		for _, dir := range Faces(d.Grid.Dims) {
			if _, ok := d.Neighbor(s.Rank, dir); !ok {
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
				return fmt.Errorf("domain: subdomain %d owns %d layers along %c, its neighbor in %v needs %d: %s",
					s.Rank, have, "xyz"[a], dir, need, do)
			}
		}
	}
	return nil
}

// Grown returns the box of a subdomain, extended by the given layers towards neighbors but not beyond physical
// faces.
func (d *Decomposition) Grown(rank int, by Radius) Box {
	for _, side := range Faces(3) {
		if _, ok := d.Neighbor(rank, side); ok {
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

// maxImbalance bounds the points of the largest subdomain, relative to those of the best balanced decomposition.
const maxImbalance = 1.1

// AutoParts returns the decomposition of the grid into n subdomains with the lowest cost per step of the busiest
// subdomain: its sweep and its messages in a face exchange of width w. Decompositions whose largest subdomain owns
// over 10% more points than that of the best balanced one are excluded. Ties go to the one with the most parts
// along the slowest axis. It returns an error if no decomposition gives every subdomain the layers that its
// neighbors need.
func AutoParts(g Grid, n int, w Radius) (Vec, error) {
	if n < 1 || n > maxParts {
		return Vec{}, fmt.Errorf("domain: number of parts: must be between 1 and %d, got %d", maxParts, n)
	}
	_, parts, ok := bestDecomposition(g, 1, n, w)
	switch {
	case ok:
		return parts, nil
	case n == 1:
		return Vec{}, fmt.Errorf("domain: %v points: a periodic axis has fewer layers than the %v that its ghosts need",
			g.along(g.Size), w.most(g))
	}
	return Vec{}, fmt.Errorf("domain: %v points in %d parts: a part has fewer layers than the %v that its neighbors need",
		g.along(g.Size), n, w.most(g))
}

// most returns the number of ghost layers per axis, on the side with more.
func (r Radius) most(g Grid) []int {
	for a := range 3 {
		r.Plus[a] = max(r.Plus[a], r.Minus[a])
	}
	return g.along(r.Plus)
}

// NestedParts returns a decomposition of a grid over hosts, and of each host's part over its devices, the same
// number on each host. The number of parts along an axis is the product of the two. The device with coordinates c
// belongs to the host with coordinates c / inner.
//
// The decomposition minimizes the points that the busiest host sends to other hosts, over the slowest links, in a
// face exchange of width w. Ties are resolved as in AutoParts, and decompositions whose largest subdomain owns
// over 10% more points than that of the best balanced one are excluded. It returns an error if no decomposition
// gives every subdomain the layers that its neighbors need.
func NestedParts(g Grid, hosts, devices int, w Radius) (outer, inner Vec, err error) {
	if hosts < 1 || devices < 1 || int64(hosts)*int64(devices) > maxNested {
		return outer, inner, fmt.Errorf(
			"domain: %d hosts of %d devices: the number of parts must be between 1 and %d",
			hosts, devices, maxNested)
	}
	outer, inner, ok := bestDecomposition(g, hosts, devices, w)
	if !ok {
		return outer, inner, fmt.Errorf(
			"domain: %v points over %d hosts of %d devices: a part has fewer layers than the %v that its neighbors need",
			g.along(g.Size), hosts, devices, w.most(g))
	}
	return outer, inner, nil
}

// bestDecomposition returns the decomposition described at NestedParts; ok is false if there is none. A single host
// sends nothing to other hosts, so only the cost of a step counts.
func bestDecomposition(g Grid, hosts, devices int, w Radius) (outer, inner Vec, ok bool) {
	type candidate struct {
		outer, inner Vec
		sized
		sent int64 // upper bound of the points that a host sends to others
	}
	var all []candidate
	balanced := int64(math.MaxInt64)
	for _, outer := range factors(hosts) {
		for _, inner := range factors(devices) {
			parts := Vec{outer[0] * inner[0], outer[1] * inner[1], outer[2] * inner[2]}
			if s, ok := sizes(g, parts, w); ok {
				all = append(all, candidate{outer, inner, s, sentBetweenHosts(g, parts, inner, w)})
				balanced = min(balanced, s.largest)
			}
		}
	}
	var best candidate
	for _, c := range all {
		if float64(c.largest) > maxImbalance*float64(balanced) {
			continue
		}
		if !ok || c.sent < best.sent || c.sent == best.sent && c.cost < best.cost {
			best, ok = c, true
		}
	}
	return best.outer, best.inner, ok
}

// NestedAs splits a given decomposition into one over hosts and one over the devices of each host. Subdomains are
// assigned to hosts in the order of their ranks, one per device. It returns an error if the subdomains of a host
// do not form a box, or if a subdomain owns fewer layers than its neighbors need.
func NestedAs(g Grid, parts Vec, devices int, w Radius) (outer, inner Vec, err error) {
	ok := min(parts[0], parts[1], parts[2]) > 0
	if ok {
		_, ok = sizes(g, parts, w)
	}
	if !ok {
		return outer, inner, fmt.Errorf(
			"domain: %v points in %v parts: a part has fewer layers than the %v that its neighbors need",
			g.along(g.Size), g.along(parts), w.most(g))
	}
	left := devices // devices of a host not yet assigned to an axis
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
			"domain: parts %v: the subdomains of each host of %d devices must form a box, in the order of their ranks",
			g.along(parts), devices)
	}
	return outer, inner, nil
}

// maxNested is the largest number of parts of NestedParts. It exceeds maxParts so that larger machines can be
// planned.
const maxNested = 1 << 24

// factors returns all ways to write n as a product of three numbers, those with the most parts along the slowest
// axis first.
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

// sentBetweenHosts returns the largest number of points that a host sends to other hosts, if each host has inner
// subdomains along each axis.
func sentBetweenHosts(g Grid, parts, inner Vec, w Radius) (most int64) {
	for host := range pieces(g, parts, inner, false) {
		sent := int64(0)
		for _, points := range host.faces(g.Dims, w) {
			sent += points
		}
		most = max(most, sent)
	}
	return most
}

// BlockOf returns the coordinates of the host that owns the subdomain with the given coordinates, with inner
// subdomains per host along each axis.
func BlockOf(coord, inner Vec) Vec {
	return Vec{coord[0] / inner[0], coord[1] / inner[1], coord[2] / inner[2]}
}

// Costs of a step in AutoParts, in units of one point of a contiguous message. Measured on NVLink: a message has a
// latency of 5 us, in which a GPU sends about 2^18 doubles and sweeps four times as many points. Faces normal to
// the slowest axis are contiguous. The others are packed and unpacked; faces normal to x use one element per
// memory transaction.
const (
	sweepCost      = 0.25
	messageCost    = 1 << 18
	contiguousCost = 1
	packedCost     = 3
	stridedCost    = 6
)

// axisCost is the cost of one point of a message along an axis.
func axisCost(axis, dims int) float64 {
	switch axis {
	case dims - 1:
		return contiguousCost
	case 0:
		return stridedCost
	}
	return packedCost
}

// stretch is the extent of a part, or of a block of adjacent parts, along one axis: its length in points, and
// whether it has a neighbor below and above. A decomposition has only a few distinct stretches, so bounds over all
// parts are computed from these.
type stretch struct {
	length       int
	below, above bool
}

// stretches returns the distinct stretches of blocks of parts along an axis. If there is only one block on a
// periodic axis, selfNeighbor tells whether it is its own neighbor.
func stretches(points, parts, block int, periodic, selfNeighbor bool) (kinds []stretch) {
	blocks := parts / block
	last, mixed := blocks-1, points%parts/block // the block with parts of two lengths
	around := periodic && (blocks > 1 || selfNeighbor)
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

// piece is a distinct shape of a part or of a block of parts: one stretch per axis.
type piece [3]stretch

// pieces yields the distinct pieces of a decomposition. No axis may have more parts than points.
func pieces(g Grid, parts, block Vec, selfNeighbor bool) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		var axes [3][]stretch
		for a := range axes {
			if parts[a] > g.Size[a] {
				return
			}
			axes[a] = stretches(g.Size[a], parts[a], block[a], g.Periodic[a], selfNeighbor)
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

// points returns the number of points of the piece.
func (p piece) points() int64 { return Vec{p[0].length, p[1].length, p[2].length}.Product() }

// hasNeighbor reports whether the piece has a neighbor in a direction.
func (p piece) hasNeighbor(face Direction) bool {
	if s := p[face.Axis()]; face.Positive() {
		return s.above
	} else {
		return s.below
	}
}

// faces yields each direction with a neighbor and the number of points sent to it.
func (p piece) faces(dims int, w Radius) iter.Seq2[Direction, int64] {
	return func(yield func(Direction, int64) bool) {
		for _, dir := range Faces(dims) {
			if !p.hasNeighbor(dir) {
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

// wide reports whether the piece owns the layers that its neighbors need.
func (p piece) wide(dims int, w Radius) bool {
	for _, dir := range Faces(dims) {
		if a := dir.Axis(); p.hasNeighbor(dir) && p[a].length < sendLayers(dir, a, w) {
			return false
		}
	}
	return true
}

// sized is what the subdomains of a cut have at most.
type sized struct {
	largest int64   // points
	cost    float64 // per step
}

// sizes returns the maxima over the subdomains. ok is false if an axis has fewer points than parts, or a subdomain
// has fewer layers than its neighbors need.
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

// cost returns the cost of one step of a subdomain: its sweep and its messages.
func (p piece) cost(dims int, w Radius) float64 {
	sum := sweepCost * float64(p.points())
	for dir, points := range p.faces(dims, w) {
		sum += messageCost + float64(points)*axisCost(dir.Axis(), dims)
	}
	return sum
}
