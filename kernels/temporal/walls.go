package temporal

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Wall is the values of the first layer of ghosts behind a Fixed or an Odd side whose values differ from level to level: at a box of points, x
// fastest, those of level 1, then those of level 2 and so on. Level 0 is in the array, as of walls that do not move. Behind a second wall
// ghosts keep what the array holds: stencils of points along the axes read none there.
type Wall struct {
	Box    domain.Box
	Values streams.Span // empty where the wall does not move
}

// Walls are those at x-, x+, y-, y+, z- and z+.
type Walls [6]Wall

func (w *Wall) moves() bool { return w.Values.Length > 0 }

// spans is what passes use of memory for walls.
func (walls *Walls) spans() (spans []streams.Span) {
	for i := range walls {
		if walls[i].moves() {
			spans = append(spans, walls[i].Values)
		}
	}
	return spans
}

// check returns an error unless the walls have all that a pass over a box reads.
func (walls *Walls) check(s stencil.Stencil, real kernels.Real, moving bool, sides Sides, box domain.Box, depth int) error {
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
			return fmt.Errorf("temporal: side %d moves, of a stencil that reaches %d layers: it is odd", i, r[i/2])
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

// args returns the wall as a kernel sees it, whose points count from the first of a box.
func (w *Wall) args(side, element int, box domain.Box) (a wallArgs) {
	if !w.moves() {
		return a
	}
	size, first := w.Box.Size(), box.Lo.Sub(w.Box.Lo)
	u, v := 0, 1 // the axes along which it lies
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
