package domain

// SendBox returns the owned points of box that are in the ghost region of width w of the neighbor in direction
// dir. For that neighbor the message comes from direction -dir, so a message in a + direction has as many layers
// as the ghost region in - direction.
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

// sendLayers returns the number of layers along axis a of a message in direction dir.
func sendLayers(dir Direction, a int, w Radius) int {
	switch dir[a] {
	case +1:
		return w.Minus[a]
	case -1:
		return w.Plus[a]
	}
	return 0
}

// GhostBox returns the ghost points of box in direction dir, the destination of the message from that neighbor.
// Its indices may be outside the grid: behind a physical face the ghosts hold the boundary condition, on a
// periodic axis they correspond to the points at the other end.
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

// Split divides the owned box into its boundary region and its interior. The boundary region has layers.Minus
// layers at the low side of each axis and layers.Plus at the high side. It consists of slabs that do not overlap,
// in the order z, y, x, so that the slabs with the longest rows are the largest. Empty slabs are omitted. If the
// box is too thin for both sides, the interior is empty.
func Split(box Box, layers Radius) (interior Box, boundary []Box) {
	interior, _, boundary = SplitBySide(box, layers)
	return interior, boundary
}

// SplitBySide is Split that also returns the side of each slab.
func SplitBySide(box Box, layers Radius) (interior Box, sides []Direction, boundary []Box) {
	for a := 2; a >= 0; a-- {
		low, high := box, box
		low.Hi[a] = min(box.Hi[a], box.Lo[a]+layers.Minus[a])
		box.Lo[a] = low.Hi[a]
		high.Lo[a] = max(box.Lo[a], box.Hi[a]-layers.Plus[a])
		box.Hi[a] = high.Lo[a]
		for k, slab := range []Box{low, high} {
			if !slab.Empty() {
				var side Direction
				side[a] = 2*k - 1
				sides, boundary = append(sides, side), append(boundary, slab)
			}
		}
	}
	return box, sides, boundary
}
