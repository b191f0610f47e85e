package pack

// Limits for tests.
const (
	MaxDims      = maxDims
	MaxTreeNodes = maxTreeNodes
)

// UseWideIds makes launches prepared later use the kernels for trees of 2^31 primitives and more.
func (t *TreeTable) UseWideIds() {
	wide := *t.packer
	wide.pack[0], wide.unpack[0] = wide.pack[1], wide.unpack[1]
	t.packer = &wide
}
