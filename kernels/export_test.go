package kernels

// UseWideIds has launches that are made later take the kernels for trees of 2^31 primitives and more.
func (t *TreeTable) UseWideIds() {
	wide := *t.packer
	wide.pack[0], wide.unpack[0] = wide.pack[1], wide.unpack[1]
	t.packer = &wide
}

// InRegisters reports whether registers hold a part of a rank's tiles.
func (n *TileGroup) InRegisters(rank int) bool { return !n.boxes[rank].whole() }
