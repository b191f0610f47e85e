package domain

import "slices"

// Direction points from a subdomain to a neighbour: -1, 0 or 1 an axis. One
// nonzero component is a face, two an edge, three a corner.
type Direction Vec

// Opposite returns the direction that leads back.
func (d Direction) Opposite() Direction { return Direction{-d[0], -d[1], -d[2]} }

// Axis returns the axis of a face direction, or -1 for an edge, a corner or no
// direction at all.
func (d Direction) Axis() int {
	axis := -1
	for a, c := range d {
		if c == 0 {
			continue
		}
		if axis >= 0 {
			return -1
		}
		axis = a
	}
	return axis
}

// Positive reports whether the first nonzero component is +1. Of a direction
// and its opposite exactly one is positive.
func (d Direction) Positive() bool {
	for _, c := range d {
		if c != 0 {
			return c > 0
		}
	}
	return false
}

// String names the direction by its signed axes: "x-", "y+z-".
func (d Direction) String() string {
	name := ""
	for a, c := range d {
		if c != 0 {
			name += string("xyz"[a]) + string("- +"[c+1])
		}
	}
	return name
}

// Faces returns the 2*dims face directions in the order x-, x+, y-, y+, z-, z+.
func Faces(dims int) []Direction {
	var faces []Direction
	for a := range dims {
		for _, c := range []int{-1, 1} {
			var d Direction
			d[a] = c
			faces = append(faces, d)
		}
	}
	return faces
}

// Directions returns all 3^dims - 1 directions: faces first, then edges, then
// corners.
func Directions(dims int) []Direction {
	byKind := [4][]Direction{1: Faces(dims)}
	for n := range 27 {
		d := Direction{n%3 - 1, n/3%3 - 1, n/9 - 1}
		kind := 0
		inside := true
		for a, c := range d {
			kind += c * c
			inside = inside && (a < dims || c == 0)
		}
		if inside && kind > 1 {
			byKind[kind] = append(byKind[kind], d)
		}
	}
	return append(append(byKind[1], byKind[2]...), byKind[3]...)
}

// Leading returns which of several directions stands for all of them, where one subdomain has
// another as its neighbour in each, as around a ring of two: in the order of Directions the first,
// as seen from the subdomain of the higher rank. So a message and the one in return have opposite
// directions.
func Leading(from, to int, several []Direction) Direction {
	for _, d := range Directions(3) {
		if from < to {
			d = d.Opposite()
		}
		if slices.Contains(several, d) {
			return d
		}
	}
	return Direction{}
}
