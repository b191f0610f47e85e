package temporal

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// Side is what lies behind a side of the points that a pass computes.
type Side int

// The sides. Behind an Open one lie points of a neighbour, or of the other end of a periodic axis: their values of level 0 are in the
// ghosts, as many layers as all levels read, with edges and corners. Behind the others ends the grid. Fixed ghosts keep
// their values at all levels. At each level the n-th layer of Mirror ghosts has the values of the n-th layer of points
// before the face, and all layers of Repeat ghosts those of the first. Odd ghosts keep those of the first
// layer; the second is twice the first less the first layer of points before the face. Behind several walls mirrored axes are
// followed first, then odd ones from the last; what then lies in a layer that keeps its values does so.
const (
	Open Side = iota
	Fixed
	Mirror
	Repeat
	Odd
)

// String names the side.
func (s Side) String() string {
	return [...]string{"open", "fixed", "mirror", "repeat", "odd"}[s]
}

// Sides are those at x-, x+, y-, y+, z- and z+.
type Sides [6]Side

// low and high are those at the ends of an axis.
func (s *Sides) low(axis int) Side  { return s[2*axis] }
func (s *Sides) high(axis int) Side { return s[2*axis+1] }

// Of returns the sides of a part of a box. Behind a side that the part does not share lie points of the box.
func (s Sides) Of(part, box domain.Box) Sides {
	for a := range box.Lo {
		if part.Lo[a] > box.Lo[a] {
			s[2*a] = Open
		}
		if part.Hi[a] < box.Hi[a] {
			s[2*a+1] = Open
		}
	}
	return s
}

// check returns an error unless a stencil can be swept within the sides.
func (s *Sides) check(st stencil.Stencil) error {
	for i, side := range s[:2*st.Dims] {
		switch radius := st.AxisRadius(i / 2); {
		case side < Open || side > Odd:
			return fmt.Errorf("temporal: side %d is %d, which is none", i, int(side))
		case side == Odd && radius > 2:
			return fmt.Errorf("temporal: an odd side of a stencil that reaches %d layers; 2 are possible", radius)
		}
	}
	return nil
}

// simple returns the sides as a stencil sees them that reaches one layer: it reads no second layer of ghosts.
func (s Sides) simple(st stencil.Stencil) Sides {
	for i := range s {
		switch one := i/2 < st.Dims && st.AxisRadius(i/2) == 1; {
		case one && s[i] == Odd:
			s[i] = Fixed
		case one && s[i] == Repeat:
			s[i] = Mirror
		}
	}
	return s
}

// region returns the points of a level that a tile needs: those of its last level, and so many times as far as the stencil
// reaches, but none behind walls.
func (s *Sides) region(box, tile domain.Box, levels int, radius domain.Vec) domain.Box {
	for a := range radius {
		tile.Lo[a] -= levels * radius[a]
		tile.Hi[a] += levels * radius[a]
		if s.low(a) != Open {
			tile.Lo[a] = max(tile.Lo[a], box.Lo[a])
		}
		if s.high(a) != Open {
			tile.Hi[a] = min(tile.Hi[a], box.Hi[a])
		}
	}
	return tile
}

// source returns the layer of points, counted from the face, whose values the n-th layer behind it has, both from 0; ok is false
// where they are none of a point's.
func (s Side) source(n int) (layer int, ok bool) {
	switch s {
	case Mirror:
		return n, true
	case Repeat:
		return 0, true
	}
	return 0, false
}
