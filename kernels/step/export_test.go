package step

// InRegisters reports whether registers hold a part of a rank's tiles.
func (n *TileGroup) InRegisters(rank int) bool { return !n.boxes[rank].whole() }
