package sweep

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Row is a row of points along x that a Go twin computes. It is valid during the call.
type Row struct {
	N       int // points
	I, J, K int // indices of the first in the whole grid

	function    string // the name of the point function
	accesses    []Access
	reductions  []Reduction
	coordinates Coordinates
	parameters  uintptr // bytes; 0: there are none
	arrays      Arrays
	frame       []byte
	reduced     [][]float64 // a row of values for each reduction; nil where none are wanted
}

// Number is what an access' values can be.
type Number interface {
	float32 | float64 | int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

// At returns the values of an access at an offset from the points of the row. Values at the points
// of a written access are the row to fill. It panics where the source would not compile: of an
// unknown name, another type, or an offset beside the footprint.
func At[T Number](r *Row, access string, dx, dy, dz int) []T {
	return AtComponent[T](r, access, 0, dx, dy, dz)
}

// AtComponent is At for a component of an access.
func AtComponent[T Number](r *Row, access string, component, dx, dy, dz int) []T {
	i := findAccess(r.accesses, access)
	if i < 0 || component < 0 || component >= len(r.arrays[i]) {
		panic(fmt.Sprintf("sweep: point function %q has no access %q, or no component %d of it", r.function, access, component))
	}
	o, a := (domain.Vec{dx, dy, dz}), &r.accesses[i]
	if o != (domain.Vec{}) || !a.Write {
		if !a.footprint(component).Has(o) {
			panic(fmt.Sprintf("sweep: point function %q reads %q at %v, beside its footprint %v", r.function, access, o, a.footprint(component)))
		}
	}
	var zero T
	if size := a.Element.size(); int(unsafe.Sizeof(zero)) != size {
		panic(fmt.Sprintf("sweep: access %q has elements of type %s, not %T", access, a.Element, zero))
	}
	array := &r.arrays[i][component]
	at := array.Layout.Offset(domain.Vec{r.I + dx, r.J + dy, r.K + dz})
	return values[T](array)[at : at+int64(r.N) : at+int64(r.N)]
}

// values returns all elements of an array of a host device.
func values[T any](a *kernels.Array) []T {
	return streams.View[T](a.Data.Memory.Bytes()[a.Data.Offset:][:a.Layout.Bytes()])
}

// Reduced returns the row of values of a reduction, which the twin fills. Where the launch takes
// none they are dropped.
func (r *Row) Reduced(name string) []float64 {
	for i, one := range r.reductions {
		if one.Name == name {
			return r.reduced[i][:r.N]
		}
	}
	panic(fmt.Sprintf("sweep: point function %q has no reduction %q", r.function, name))
}

// X returns where point i of the row lies.
func (r *Row) X(i int) float64 { return r.coordinate(0, r.I+i) }

// Y and Z return where the row lies.
func (r *Row) Y() float64 { return r.coordinate(1, r.J) }

// Z is described at Y.
func (r *Row) Z() float64 { return r.coordinate(2, r.K) }

func (r *Row) coordinate(axis, index int) float64 {
	c := &r.coordinates
	return (float64(index) + c.Shift[axis]) * c.Spacing[axis]
}

// Step returns the number of the time step.
func (r *Row) Step() int64 { return int64(binary.NativeEndian.Uint64(r.frame)) }

// Time returns the time at which the step begins, see Moment.
func (r *Row) Time() float64 {
	start, length := binary.NativeEndian.Uint64(r.frame[8:]), binary.NativeEndian.Uint64(r.frame[16:])
	return Moment{r.Step(), math.Float64frombits(start), math.Float64frombits(length)}.time()
}

// Parameters returns the parameters of the launch, which are of type T.
func Parameters[T any](r *Row) *T {
	var zero T
	if r.parameters == 0 || unsafe.Sizeof(zero) != r.parameters {
		panic(fmt.Sprintf("sweep: point function %q has no parameters of type %T", r.function, zero))
	}
	return (*T)(unsafe.Pointer(&r.frame[frameNumbers*8]))
}
