package kernels

// What tests from outside look at.
var EveryStencil = everyStencil

// Shapes returns the shapes in which large boxes may be swept, the default first.
func (s *Sweeper) Shapes() []Shape { return s.form.shapes }

// UseWideIds has launches that are made later take the kernels for trees of 2^31 primitives and more.
func (t *TreeTable) UseWideIds() {
	wide := *t.packer
	wide.pack[0], wide.unpack[0] = wide.pack[1], wide.unpack[1]
	t.packer = &wide
}

// UseShape has large boxes swept in a shape.
func (s *Sweeper) UseShape(shape Shape) { s.shape = shape }
