package pack

// Limits that tests go up to.
const (
	MaxDims      = maxDims
	MaxTreeNodes = maxTreeNodes
)

// UseWideIds has launches that are made later take the kernels for trees of 2^31 primitives and more.
func (t *TreeTable) UseWideIds() {
	wide := *t.packer
	wide.pack[0], wide.unpack[0] = wide.pack[1], wide.unpack[1]
	t.packer = &wide
}
