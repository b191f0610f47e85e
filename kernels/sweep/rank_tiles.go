package sweep

import (
	"slices"

	"github.com/halox/halox/domain"
)

// rankTile is what one rank owns.
type rankTile struct {
	box      domain.Box
	partners []int // ranks of the world

	// On a host device: what sweeps it, by phase, and what that is given.
	sweep []func(frame []byte)
	frame []byte
}

// tileRow is the multiple of points at which rows are cut: those of two cache lines of doubles.
const tileRow = 32

// cutIntoTiles cuts a box into at most so many tiles, of which the largest takes the least time by an estimate: its
// points, and a part of those on its surface, which others wait for.
func cutIntoTiles(box domain.Box, most int) (tiles []domain.Box) {
	size := box.Size()
	best, parts := 1<<62, domain.Vec{1, 1, 1}
	for z := 1; z <= min(size[2], most); z++ {
		for y := 1; y <= min(size[1], most/z); y++ {
			for x := 1; x <= min(max(1, size[0]/tileRow), most/(z*y)); x++ {
				nx, ny, nz := longest(size[0], x, tileRow), longest(size[1], y, 1), longest(size[2], z, 1)
				if cost := 4*nx*ny*nz + nx*ny + ny*nz + nx*nz; cost < best {
					best, parts = cost, domain.Vec{x, y, z}
				}
			}
		}
	}
	units := domain.Vec{tileRow, 1, 1}
	for i := range parts[0] * parts[1] * parts[2] {
		at := domain.Vec{i % parts[0], i / parts[0] % parts[1], i / parts[0] / parts[1]}
		b := box
		for a := range at {
			b.Lo[a] = box.Lo[a] + cutAt(size[a], parts[a], at[a], units[a])
			b.Hi[a] = box.Lo[a] + cutAt(size[a], parts[a], at[a]+1, units[a])
		}
		tiles = append(tiles, b)
	}
	return tiles
}

// cutAt returns where the i-th of so many parts of a length begins: at a multiple of unit.
func cutAt(length, parts, i, unit int) int {
	if i == parts {
		return length
	}
	return length / unit * i / parts * unit
}

// longest returns the length of the longest part.
func longest(length, parts, unit int) (most int) {
	for i := range parts {
		most = max(most, cutAt(length, parts, i+1, unit)-cutAt(length, parts, i, unit))
	}
	return most
}

// readsAround reports whether who sweeps a box reads points of another one, in any array.
func (n *plan) readsAround(box, of domain.Box) bool {
	if box.Empty() || box.Grow(n.radius()).Intersect(of).Empty() {
		return false
	}
	return slices.ContainsFunc(n.reads, func(r readArray) bool {
		return slices.ContainsFunc(r.footprint, func(o domain.Vec) bool { return !box.Shift(o).Intersect(of).Empty() })
	})
}
