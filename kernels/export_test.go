package kernels

// What tests from outside look at.
var EveryStencil = everyStencil

// Shapes returns the shapes in which large boxes may be swept, the default first.
func (s *Sweeper) Shapes() []Shape { return s.form.shapes }

// UseShape has large boxes swept in a shape.
func (s *Sweeper) UseShape(shape Shape) { s.shape = shape }
