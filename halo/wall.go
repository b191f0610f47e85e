package halo

import (
	"fmt"

	"github.com/halox/halox/domain"
)

// WallKind says what ghosts behind a wall hold.
type WallKind string

// The kinds. A Dirichlet wall gives all its ghosts numbers. A Repeat wall gives
// them the value of the owned point next to the wall, and a Mirror wall those of
// the owned points as far from the wall as they are: the first ghost that of the
// first point, the second that of the second, for a wall halfway between the first
// of both. Nothing flows through either.
const (
	Dirichlet WallKind = "dirichlet"
	Repeat    WallKind = "repeat"
	Mirror    WallKind = "mirror"
)

// Wall is what lies behind one face of the grid.
type Wall struct {
	Side domain.Direction // a face: x-, x+, ...
	Kind WallKind
	// Values are those of a Dirichlet wall: one for all components, or one for
	// each. Complex elements get them as real parts.
	Values []float64
}

// source returns the layer of owned points that the n-th layer of ghosts, counted
// from 0 at the wall, gets its values from: its distance from the wall.
func (w Wall) source(n int) int {
	if w.Kind == Mirror {
		return n
	}
	return 0
}

// checkWalls returns an error unless the walls are faces of the grid, each once,
// that an axis ends at, and the field can give them what they need.
func (f *Field) checkWalls(walls []Wall) error {
	seen := map[domain.Direction]bool{}
	for _, w := range walls {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("halo: wall %v of field %q: %w", w.Side, f.Spec.Name, fmt.Errorf(format, args...))
		}
		a := w.Side.Axis()
		switch {
		case a < 0 || a >= f.Cut.Grid.Dims:
			return fail("direction %v is no face of a grid of %d dimensions", [3]int(w.Side), f.Cut.Grid.Dims)
		case f.Cut.Grid.Periodic[a]:
			return fail("the axis is periodic and has no walls")
		case seen[w.Side]:
			return fail("it is given twice")
		case w.Kind != Dirichlet && w.Kind != Repeat && w.Kind != Mirror:
			return fail("no kind %q: dirichlet, repeat or mirror", w.Kind)
		case w.Kind == Dirichlet && len(w.Values) != 1 && len(w.Values) != max(1, f.Spec.Components):
			return fail("%d values for %d components", len(w.Values), max(1, f.Spec.Components))
		}
		seen[w.Side] = true
		if err := f.checkMirror(w); err != nil {
			return fail("%w", err)
		}
	}
	return nil
}

// checkMirror returns an error if a subdomain has too few layers to mirror.
func (f *Field) checkMirror(w Wall) error {
	a := w.Side.Axis()
	for _, s := range f.Cut.Subdomains {
		ghosts := domain.GhostBox(s.Box, w.Side, f.Spec.Width).Size()[a]
		if have := s.Box.Size()[a]; w.Kind == Mirror && f.atWall(s.Rank, w.Side) && have < ghosts {
			return fmt.Errorf("subdomain %d owns %d layers and would mirror %d: use fewer parts or a wall that repeats", s.Rank, have, ghosts)
		}
	}
	return nil
}

// atWall reports whether a subdomain ends at the wall on that side.
func (f *Field) atWall(rank int, side domain.Direction) bool {
	_, inside := f.Cut.Neighbour(rank, side)
	return !inside
}
