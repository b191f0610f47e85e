package pack

import (
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
)

// Add is a box of numbers to be added to the box at Dst, number by number: each
// element of the copy is one or more of them.
type Add struct {
	Copy
	Number kernels.Number
}

// Adds makes one launch ready that makes all the additions of
// numbers of any types. What they write does not overlap, nor does it overlap what
// they read. Whole numbers wrap. The memory is as for Copies.
func (m *BoxCopier) Adds(name string, adds ...Add) (*Copies, error) {
	w := work{}
	w.spec.Name, w.spec.Function = name, m.add
	for _, a := range adds {
		if err := a.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		a.slack = slack{} // what lies beside is not to be added to
		w.include(a.Dst.Data, a.Src.Data, a.run())
		w.strided = append(w.strided, a.strided()...)
	}
	w.spec.Run = func() { addRows(adds) }
	return m.ready(w)
}

// check returns an error unless the elements are made of the numbers and lie in
// their memory.
func (a Add) check() error {
	place, count, err := scalar.Of(a.Number)
	if err != nil {
		return err
	}
	if size := scalar.All[place].Size * count; a.ElementSize%size != 0 {
		return fmt.Errorf("pack: elements of %d bytes are no whole number of %s", a.ElementSize, a.Number)
	}
	return a.Copy.check()
}

// strided gives the addition in scalars.
func (a Add) strided() (all []stridedCopy) {
	place, _, _ := scalar.Of(a.Number) // checked before
	width := int64(scalar.All[place].Size)
	r := a.run()
	for _, part := range r.cut(width) {
		all = append(all, part.strided(width, uint32(place)))
	}
	return all
}

// addRows is the host version of kernel add.
func addRows(adds []Add) {
	for _, a := range adds {
		switch place, _, _ := scalar.Of(a.Number); scalar.All[place].Number {
		case "float32":
			addRowsOf[float32](a.Copy, 4)
		case "float64":
			addRowsOf[float64](a.Copy, 8)
		case "int32":
			addRowsOf[int32](a.Copy, 4)
		case "int64":
			addRowsOf[int64](a.Copy, 8)
		}
	}
}

// addRowsOf adds one box of scalars, which have the given size in bytes.
func addRowsOf[T float32 | float64 | int32 | int64](c Copy, size int) {
	per := int64(c.ElementSize / size) // scalars an element
	n := int64(c.Size[0]) * per
	dst, src := launch.Values[T](c.Dst.Data), launch.Values[T](c.Src.Data)
	for z := range int64(c.Size[2]) {
		for y := range int64(c.Size[1]) {
			to := dst[(c.Dst.First+z*c.Dst.Plane+y*c.Dst.Pitch)*per:][:n]
			for i, v := range src[(c.Src.First+z*c.Src.Plane+y*c.Src.Pitch)*per:][:n] {
				to[i] += v
			}
		}
	}
}
