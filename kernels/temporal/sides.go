package temporal

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Side is what lies behind a side of the points that a pass computes.
type Side int

// The sides. Behind an Open one are points of a neighbor, or of the other end of a periodic axis: their values of
// level 0 are in the ghosts, as many layers as all levels read, with edges and corners. The grid ends at the others.
//
//   - Fixed ghosts keep their values at all levels.
//   - The n-th layer of Mirror ghosts has the values of the n-th layer of points before the face, at each level.
//   - All layers of Repeat ghosts have the values of the first layer of points.
//   - Of Odd ghosts the first layer keeps its values; the second is twice the first less the first layer of points.
//
// Behind several walls mirrored axes are followed first, then odd ones from the last. What then is in a layer that
// keeps its values does so.
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

// Of returns the sides of a part of a box: Open where the part does not share a side of the box.
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
			return fmt.Errorf("temporal: side %d has no kind %d", i, int(side))
		case side == Odd && radius > 2:
			return fmt.Errorf("temporal: an odd side of a stencil that reaches %d layers; must be at most 2", radius)
		}
	}
	return nil
}

// simple returns the sides as a stencil sees them that reads one layer of ghosts.
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

// region returns the points of a level that a tile needs: those of its last level, and levels times the radius around
// them, but none behind walls.
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

// Wall is the values of the first layer of ghosts behind a Fixed or an Odd side that differ from level to level: of a
// box of points, x fastest, those of level 1, then those of level 2 and so on. Level 0 is in the array, as of walls
// that do not move. Behind a second wall ghosts keep what the array holds: stencils of points along the axes read
// none there.
type Wall struct {
	Box    domain.Box
	Values streams.Span // empty where the wall does not move
}

// Walls are those at x-, x+, y-, y+, z- and z+.
type Walls [6]Wall

func (w *Wall) moves() bool { return w.Values.Length > 0 }

// spans is the memory of the walls that move.
func (walls *Walls) spans() (spans []streams.Span) {
	for i := range walls {
		if walls[i].moves() {
			spans = append(spans, walls[i].Values)
		}
	}
	return spans
}

// check returns an error unless the walls hold all that a pass over a box reads.
func (walls *Walls) check(
	s stencil.Stencil, real kernels.Real, moving bool, sides Sides, box domain.Box, depth int,
) error {
	var r domain.Vec
	for a := range s.Dims {
		r[a] = s.AxisRadius(a)
	}
	for i := range walls {
		w := &walls[i]
		if !w.moves() {
			continue
		}
		need := sides.region(box, box, depth-1, r)
		need.Lo[i/2] = box.Lo[i/2] - 1
		if i%2 == 1 {
			need.Lo[i/2] = box.Hi[i/2]
		}
		need.Hi[i/2] = need.Lo[i/2] + 1
		switch bytes := w.Box.Points() * int64(depth-1) * int64(real.Size()); {
		case !moving:
			return fmt.Errorf("temporal: side %d moves, in a pass whose walls do not", i)
		case sides[i] != Fixed && sides[i] != Odd:
			return fmt.Errorf("temporal: side %d is %s and moves", i, sides[i])
		case sides[i] == Fixed && r[i/2] > 1:
			return fmt.Errorf("temporal: side %d moves, and is read %d layers deep: it must be odd", i, r[i/2])
		case w.Box.Intersect(need) != need || w.Box.Size()[i/2] != 1:
			return fmt.Errorf("temporal: the values of side %d at %v, of which %v are read", i, w.Box, need)
		case w.Values.Length < bytes:
			return fmt.Errorf("temporal: %d bytes of values of side %d, of %d", w.Values.Length, i, bytes)
		}
	}
	return nil
}

// wallArgs is struct Wall of the kernels.
type wallArgs struct {
	Values       uint64
	Width, Level int64
}

// args returns the wall as a kernel sees it, which counts points from the first of a box.
func (w *Wall) args(side, element int, box domain.Box) (a wallArgs) {
	if !w.moves() {
		return a
	}
	size, first := w.Box.Size(), box.Lo.Sub(w.Box.Lo)
	u, v := 0, 1 // the axes of the wall
	if side < 4 {
		v = 2
	}
	if side < 2 {
		u = 1
	}
	a.Width, a.Level = int64(size[u]), w.Box.Points()
	a.Values = w.Values.Address() + uint64((int64(first[u])+int64(first[v])*a.Width)*int64(element))
	return a
}
