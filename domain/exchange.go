package domain

// SendBox returns the owned points of box that the neighbour in direction dir
// holds in its ghost region of width w. That neighbour looks back along -dir,
// so a message in a + direction has as many layers as ghosts in - directions.
func SendBox(box Box, dir Direction, w Radius) Box {
	for a, c := range dir {
		switch layers := sendLayers(dir, a, w); c {
		case +1:
			box.Lo[a] = max(box.Lo[a], box.Hi[a]-layers)
		case -1:
			box.Hi[a] = min(box.Hi[a], box.Lo[a]+layers)
		}
	}
	return box
}

// sendLayers returns how many layers a message in direction dir has along
// axis a.
func sendLayers(dir Direction, a int, w Radius) int {
	switch dir[a] {
	case +1:
		return w.Minus[a]
	case -1:
		return w.Plus[a]
	}
	return 0
}

// GhostBox returns the ghost points of box on its side in direction dir, where
// the message from the neighbour there arrives. Its indices may lie outside
// the grid: behind a physical face they hold its boundary condition, on a periodic
// axis they stand for the points at the other end.
func GhostBox(box Box, dir Direction, w Radius) Box {
	for a, c := range dir {
		switch c {
		case +1:
			box.Lo[a], box.Hi[a] = box.Hi[a], box.Hi[a]+w.Plus[a]
		case -1:
			box.Lo[a], box.Hi[a] = box.Lo[a]-w.Minus[a], box.Lo[a]
		}
	}
	return box
}

// Split cuts the owned box into its boundary region and its interior. The
// boundary region has layers.Minus layers at the low side of each axis and
// layers.Plus at the high side. It comes as slabs that do not overlap, z first,
// then y, then x, so that the slabs with the longest rows are the largest.
// Empty slabs are left out; in a box too thin for both sides the interior is
// empty.
func Split(box Box, layers Radius) (interior Box, boundary []Box) {
	for a := 2; a >= 0; a-- {
		low, high := box, box
		low.Hi[a] = min(box.Hi[a], box.Lo[a]+layers.Minus[a])
		box.Lo[a] = low.Hi[a]
		high.Lo[a] = max(box.Lo[a], box.Hi[a]-layers.Plus[a])
		box.Hi[a] = high.Lo[a]
		for _, slab := range []Box{low, high} {
			if !slab.Empty() {
				boundary = append(boundary, slab)
			}
		}
	}
	return box, boundary
}
