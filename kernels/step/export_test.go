package step

// InRegisters reports whether registers hold a part of a rank's tiles.
func (g *TileGroup) InRegisters(rank int) bool { return !g.tiles.(*faceTiles).boxes[rank].whole() }

// Number sets the number of the next exchange.
func (s *TileSteps) Number(base int64) { s.base = base }
