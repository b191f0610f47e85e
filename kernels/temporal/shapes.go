package temporal

import (
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/stencil"
)

// shapesWith returns the kernels for a stencil and arrays of a layout on a device as "sm_90", whose blocks may have so much shared memory.
func shapesWith(s stencil.Stencil, real kernels.Real, l domain.Layout, arch string, shared int, o Options) (all []shape) {
	if !o.plain() {
		shared -= normsShared
	}
	all = slices.DeleteFunc(inRegisters(s, real, l, arch, o), func(one shape) bool { return one.shared > shared })
	for depth := max(2, o.Norms); depth <= 4; depth++ {
		if one, ok := generalShape(s, real, depth, shared, o); ok {
			all = append(all, one)
		}
	}
	return slices.DeleteFunc(all, func(one shape) bool { // whose depth has none for the boxes that it is not for
		return !slices.ContainsFunc(all, func(s shape) bool { return s.depth == one.depth && s.least == [3]int{} })
	})
}

// inRegisters returns the kernels whose levels are in registers, and of which a target has enough.
func inRegisters(s stencil.Stencil, real kernels.Real, l domain.Layout, arch string, o Options) (all []shape) {
	vector := int64(16 / real.Size())
	if !l.Padded() || l.Pitch%vector != 0 || l.Plane%vector != 0 {
		return nil
	}
	_, star := s.AsStar()
	_, planar := source.Planar(s, real.Size())
	switch {
	case planar && o.plain():
		for _, c := range planeSumsTried[real] {
			if c.on.has(arch) {
				all = append(all, planeSumsShape(s, real, c))
			}
		}
	case longStar(s) && o.plain():
		for _, c := range longStarsTried[real] {
			if c.on.has(arch) {
				all = append(all, longStarShape(s, real, c))
			}
		}
	case !star:
	case s.Dims == 3 && o.Norms <= 1:
		for _, c := range planesOf(real, o) {
			if c.on.has(arch) {
				all = append(all, planesShape(s, real, c, o))
			}
		}
	case s.Dims == 2:
		for _, c := range stripsFor(real, arch, o) {
			all = append(all, stripsShape(s, real, c, o))
		}
	}
	return all
}

// normsShared is what of shared memory a block joins its norms in, at most.
const normsShared = 3 << 10
