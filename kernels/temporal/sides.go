package temporal

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Side is the kind of a side of the points that a pass computes.
type Side int

// The sides. Behind an Open side are points of a neighbor, or of the other end of a periodic axis: their values of
// level 0 are in the ghosts, as many layers as all levels read, with edges and corners. The grid ends at the other
// sides.
//
// - Fixed ghosts keep their values at all levels.
// - The n-th layer of Mirror ghosts has the values of the n-th layer of points inside the face, at each level.
// - All layers of Repeat ghosts have the values of the first layer of points.
// - The first layer of Odd ghosts keeps its values; the second is twice the first minus the first layer of points.
//
// Behind several faces mirrored axes are resolved first, then odd ones starting from the last. Points that are
// then in a layer that keeps its values keep theirs.
const (
	Open Side = iota
	Fixed
	Mirror
	Repeat
	Odd
)

// String returns the name of the side.
func (s Side) String() string {
	return [...]string{"open", "fixed", "mirror", "repeat", "odd"}[s]
}

// Sides are the sides at x-, x+, y-, y+, z- and z+.
type Sides [6]Side

// low and high return the sides at the ends of an axis.
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

// check returns an error unless a stencil can be swept with the sides.
func (s *Sides) check(st stencil.Stencil) error {
	for i, side := range s[:2*st.Dims] {
		switch radius := st.AxisRadius(i / 2); {
		case side < Open || side > Odd:
			return fmt.Errorf("temporal: side %d: kind must be known, got %d", i, int(side))
		case side == Odd && radius > 2:
			return fmt.Errorf("temporal: odd side: stencil radius must be at most 2, got %d", radius)
		}
	}
	return nil
}

// simple returns equivalent sides for a stencil that reads one layer of ghosts.
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

// region returns the points of a level that a tile needs: those of its last level, and levels times the radius
// around them, except behind physical faces.
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

// Face holds the values of the first layer of ghosts behind a Fixed or an Odd side, if they differ between levels:
// for a box of points, x fastest, those of level 1, then those of level 2 and so on. Level 0 is in the array, as
// for constant values. Behind a second face ghosts keep the values of the array, which stencils with points only
// on the axes do not read.
type Face struct {
	Box    domain.Box   // points of the ghost layer
	Values streams.Span // empty for constant values
}

// Faces are the faces at x-, x+, y-, y+, z- and z+.
type Faces [6]Face

func (f *Face) moves() bool { return f.Values.Length > 0 }

// spans returns the memory of the moving faces.
func (faces *Faces) spans() (spans []streams.Span) {
	for i := range faces {
		if faces[i].moves() {
			spans = append(spans, faces[i].Values)
		}
	}
	return spans
}

// check returns an error unless the faces contain all values that a pass over a box reads.
func (faces *Faces) check(
	s stencil.Stencil, real domain.Element, moving bool, sides Sides, box domain.Box, depth int,
) error {
	var r domain.Vec
	for a := range s.Dims {
		r[a] = s.AxisRadius(a)
	}
	for i := range faces {
		w := &faces[i]
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
			return fmt.Errorf("temporal: side %d: must not move without option Moving", i)
		case sides[i] != Fixed && sides[i] != Odd:
			return fmt.Errorf("temporal: side %d: must be fixed or odd to move, got %s", i, sides[i])
		case sides[i] == Fixed && r[i/2] > 1:
			return fmt.Errorf("temporal: side %d moves and %d layers are read: must be odd", i, r[i/2])
		case w.Box.Intersect(need) != need || w.Box.Size()[i/2] != 1:
			return fmt.Errorf("temporal: values of side %d: box %v must contain %v", i, w.Box, need)
		case w.Values.Length < bytes:
			return fmt.Errorf("temporal: values of side %d: must have %d bytes, got %d", i, bytes, w.Values.Length)
		}
	}
	return nil
}

// wallArgs is struct Wall of the kernels.
type wallArgs struct {
	Values       uint64
	Width, Level int64
}

// args returns the face for a kernel, which counts points from the first of a box.
func (f *Face) args(side, element int, box domain.Box) (a wallArgs) {
	if !f.moves() {
		return a
	}
	size, first := f.Box.Size(), box.Lo.Sub(f.Box.Lo)
	u, v := 0, 1 // the axes of the face
	if side < 4 {
		v = 2
	}
	if side < 2 {
		u = 1
	}
	a.Width, a.Level = int64(size[u]), f.Box.Points()
	a.Values = f.Values.Address() + uint64((int64(first[u])+int64(first[v])*a.Width)*int64(element))
	return a
}
