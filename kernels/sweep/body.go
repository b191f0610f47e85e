package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Body is a point function with its accesses, for kernels and loops of other packages that call it: on a GPU kernels that include
// site.cuh, on a host device Rows.
type Body struct{ plan *plan }

// NewBody checks a point function for a device, as New does.
func NewBody(d *streams.Device, p Point, accesses []Access) (*Body, error) {
	if d == nil {
		return nil, errNoDevice
	}
	n, err := newPlan(p, accesses)
	if err != nil {
		return nil, err
	}
	if d.GoKernels && p.Go == nil && p.linear == nil {
		return nil, fmt.Errorf("sweep: point function %q on device %v: %w", p.Name, d, ErrNoTwin)
	}
	return &Body{n}, nil
}

// BodyArray is an array of the accesses of a Body, in order of accesses and components. Read and Written number those that are read and
// those that are written, as kernels do, -1 for neither.
type BodyArray struct {
	Access, Component int
	Element           Element
	Footprint         stencil.Footprint
	Read, Written     int
}

// Arrays returns all arrays.
func (b *Body) Arrays() (all []BodyArray) {
	for i, a := range b.plan.accesses {
		for q := range a.components() {
			all = append(all, BodyArray{Access: i, Component: q, Element: a.Element, Read: -1, Written: -1})
		}
	}
	for k, r := range b.plan.reads {
		all[r.array].Read, all[r.array].Footprint = k, r.footprint
	}
	for k, w := range b.plan.writes {
		all[w.array].Written = k
	}
	return all
}

// Check returns an error unless the arrays are those of the accesses, one value a point, and what is written is no other array too.
func (b *Body) Check(arrays Arrays) error {
	fail := func(err error) error { return fmt.Errorf("sweep: point function %q: %w", b.plan.point.Name, err) }
	if len(arrays) != len(b.plan.accesses) {
		return fail(fmt.Errorf("arrays of %d accesses, not of %d", len(arrays), len(b.plan.accesses)))
	}
	for i, a := range b.plan.accesses {
		if len(arrays[i]) != a.components() {
			return fail(fmt.Errorf("access %q has %d components, not %d", a.Name, a.components(), len(arrays[i])))
		}
		for _, array := range arrays[i] {
			if size := a.Element.Size(); array.Layout.ElementSize != size {
				return fail(fmt.Errorf("access %q: elements of %d bytes are no %s", a.Name, array.Layout.ElementSize, a.Element))
			}
		}
	}
	if err := b.plan.checkOverlap(slices.Concat(arrays...)); err != nil {
		return fail(err)
	}
	return nil
}

// Program returns a program of kernels/cu that includes site.cuh, for arrays whose strides are those of some.
func (b *Body) Program(file string, arrays Arrays, others ...kernels.Header) kernels.Program {
	c, _ := classesOf(slices.Concat(arrays...))
	return b.plan.programOf(file, b.plan.source(c, b.plan.form()), others...)
}

// Alike reports whether a Program for some arrays is one for others.
func (b *Body) Alike(some, others Arrays) bool {
	c, _ := classesOf(slices.Concat(some...))
	d, _ := classesOf(slices.Concat(others...))
	return slices.Equal(c, d)
}

// ArraysArgument returns struct Arrays of site.cuh.
func (b *Body) ArraysArgument(arrays Arrays) []byte {
	all := slices.Concat(arrays...)
	_, strides := classesOf(all)
	var w words
	w.putArrays(all, strides)
	return w
}

// FrameArgument returns struct Frame of site.cuh, of step 0.
func (b *Body) FrameArgument() []byte { return b.plan.frame() }

// Launch returns a kernel as one whose frame can be set, which begins so far into the argument.
func (b *Body) Launch(k *streams.Kernel, frame int) *Launch {
	return &Launch{k, b.plan, k.Argument()[frame:]}
}

// Explain says what an error of the compiler means for the function.
func (b *Body) Explain(err error) error { return b.plan.explain(err) }
