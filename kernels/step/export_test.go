package step

// InRegisters reports whether registers hold a part of a rank's tiles.
func (g *TileGroup) InRegisters(rank int) bool { return !g.tiles.(*faceTiles).boxes[rank].whole() }

// Number has the next exchange have a number.
func (s *TileSteps) Number(base int64) { s.base = base }
