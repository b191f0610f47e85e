package domain

import (
	"fmt"
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
				return fmt.Errorf("domain: subdomain %d owns %d layers along %c, its neighbour in %v needs %d: %s", s.Rank, have, "xyz"[a], dir, need, do)
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
