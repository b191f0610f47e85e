package scheme

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/temporal"
)

// passOptions returns what the passes of a subdomain do that take no norms.
func (b *blocked) passOptions(rank int) temporal.Options {
	o := temporal.Options{Sums: b.step.Sums}
	for _, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(rank, side); !inside && b.moves(side) {
			o.Moving = true
		}
	}
	return o
}

// moves reports whether the wall at a side has values that change with time.
func (b *blocked) moves(side domain.Direction) bool {
	c := b.variable().Boundary.At(side)
	return c.Kind == boundary.Dirichlet && c.Profile != nil
}

// addTables makes room for the values of walls that move, at all levels of passes of a depth between the first and the last.
func (b *blocked) addTables(p *blockedPart, deepest int) (err error) {
	if p.tables, err = b.ghosts[b.variable()][0].NewTables(p.rank, deepest-1); err != nil || p.tables == nil {
		return err
	}
	b.run.resources.Add(p.tables)
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if box, values, ok := p.tables.At(side); ok {
			p.walls[i] = temporal.Wall{Box: box, Values: values}
		}
	}
	return nil
}

// sides returns what lies behind the sides of a subdomain.
func (b *blocked) sides(rank int) (sides temporal.Sides) {
	var reach domain.Radius
	for _, a := range b.step.reads(b.variable()) {
		reach = deeper(reach, a.footprint().Radius())
	}
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(rank, side); inside {
			continue
		}
		c := b.variable().Boundary.At(side)
		switch {
		case c.Kind == boundary.Neumann:
			sides[i] = temporal.Mirror
		case c.Kind == boundary.Repeat:
			sides[i] = temporal.Repeat
		case c.Kind == boundary.Dirichlet && c.Odd && at(reach, side) > 1:
			sides[i] = temporal.Odd
		default:
			sides[i] = temporal.Fixed
		}
	}
	return sides
}
