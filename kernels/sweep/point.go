package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Point is the computation at one point of a stage.
//
// In CUDA it is a function with its name, which is inlined:
//
//	template <typename P> __device__ __forceinline__ void wave(P &p) {
//		const double sum = p.at(u, 1, 0, 0) + p.at(u, -1, 0, 0) + ...;
//		p.set(next, 2 * p.at(u) - p.at(old) + p.parameters.C2 * (sum - 6 * p.at(u)));
//	}
//
// p has
//
//	at(access, dx, dy, dz)   the value of an access at an offset from the point; default 0, 0, 0.
//	                         Offsets are constants of its footprint. at(f[2], ...) is component 2.
//	set(access, value)       the value of a written access, or of a component, at the point. All are
//	                         set; default 0, or the old value if in place
//	reduce(name, value)      the value of a reduction at the point; by default the point adds nothing
//	i(), j(), k()            the indices of the point in the whole grid, from 0
//	x(), y(), z()            its position, see Coordinates
//	step(), time(), length() the time step, the time at which it begins, and its length, see Moment
//	parameters               the numbers of Parameters, with their Go names
//
// The compiler does not contract products and sums, so that a Go counterpart with the same operations, each
// product rounded by a conversion, is bitwise identical. A GPU may call the function for points outside the box,
// with any values, and discards the results.
type Point struct {
	Name string // of the function: a C identifier
	Dims int    // 2 or 3
	CUDA string // the source, which may also contain other functions; default none: GPUs reject it, see ErrNoSource
	File string // name of the source in compiler messages; default Name.cu

	// Go computes a row of points. It is optional: CPU devices then reject the function.
	Go func(r *Row)

	// Parameters is a struct of numbers of fixed size, or a pointer to one, with the initial values of launches.
	// Default: none.
	Parameters any

	// Coordinates give the positions of points.
	Coordinates Coordinates

	Reductions []Reduction // default none

	// Sums selects how sums of norms and reductions are computed. Default: reproducible.
	Sums sums.Mode

	// Elsewhere names accesses and reductions of other functions in the source, which this one does not use: a source
	// is compiled for each of its functions, with the names of that one. A scheme.Step finds them itself.
	Elsewhere []string

	// Values computes the parameters of a Formula, where they change from step to step. Default nil.
	Values *Values

	// linear is the stencil passed to Linear. Such a function runs on CPU devices by package kernels/rows instead of
	// Go, and its kernels are compiled in measured configurations, see linearForm.
	linear *stencil.Stencil

	// formula is what Formula was given. Such a function, too, runs on CPU devices by package kernels/rows.
	formula *stencil.Form
}

// runsOnCPU reports whether the function has a Go counterpart.
func (p Point) runsOnCPU() bool { return p.Go != nil || p.linear != nil || p.formula != nil }

// ErrNoCounterpart means that a point function for a CPU device has no Go counterpart.
var ErrNoCounterpart = errors.New("the point function must have a Go counterpart for CPU devices")

// ErrNoSource says that a GPU was given a point function without its CUDA source.
var ErrNoSource = errors.New("the point function has no CUDA source (Point.CUDA), which GPUs need")

func (p Point) hasSource() bool { return strings.TrimSpace(p.CUDA) != "" }

func (p Point) file() string {
	if p.File != "" {
		return p.File
	}
	return p.Name + ".cu"
}

// momentCall finds calls in a source that depend on the moment.
var momentCall = regexp.MustCompile(`\b(step|time|length)\s*\(\s*\)`)

// Momentary reports whether the function may use the step or the time, which replayed launches look up, see Frames.
func (p Point) Momentary() bool {
	return !p.hasSource() || momentCall.MatchString(p.CUDA)
}

// placeCalls finds, for each axis, the calls in a source that return an index or a coordinate.
var placeCalls = [3]*regexp.Regexp{
	regexp.MustCompile(
		`\.\s*[ix]\s*\(\s*\)`), regexp.MustCompile(`\.\s*[jy]\s*\(\s*\)`), regexp.MustCompile(`\.\s*[kz]\s*\(\s*\)`),
}

// Placed reports whether the function may use the position of a point along an axis, by its index or by its
// coordinate. Formulas take it modulo the grid.
func (p Point) Placed(axis int) bool {
	return p.formula == nil && (!p.hasSource() || placeCalls[axis].MatchString(p.CUDA))
}

// Key identifies everything in the function that the duration of a sweep depends on: the shape of a linear
// stencil, or the source.
func (p Point) Key() string {
	if p.linear != nil {
		return fmt.Sprintf("linear %v", p.linear.Shape())
	}
	return fmt.Sprintf("%s %x", p.Name, sha256.Sum256([]byte(p.CUDA)))
}

// checkSource returns an error unless the source has the function, and only names that it can use. CPU devices do
// not compile it, but reject what a GPU would.
func (p Point) checkSource() error {
	if !p.hasSource() && !p.runsOnCPU() {
		return errors.New("it has neither a CUDA source (Point.CUDA) nor a Go counterpart (Point.Go)")
	}
	if p.hasSource() && !regexp.MustCompile(`\b`+p.Name+`\b`).MatchString(p.CUDA) {
		return fmt.Errorf(
			"source must have a function of its name: template <typename P> __device__ __forceinline__ void %s(P &p)",
			p.Name)
	}
	for _, name := range p.Elsewhere {
		if err := checkName(name); err != nil {
			return fmt.Errorf("Point.Elsewhere: %w", err)
		}
	}
	return nil
}

// check returns an error unless the function can be swept with the accesses.
func (p Point) check(accesses []Access) error {
	fail := func(err error) error { return fmt.Errorf("sweep: point function %q: %w", p.Name, err) }
	if err := checkName(p.Name); err != nil {
		return fail(fmt.Errorf("name %w", err))
	}
	if p.Dims != 2 && p.Dims != 3 {
		return fail(fmt.Errorf("number of dimensions must be 2 or 3, got %d", p.Dims))
	}
	if err := p.checkSource(); err != nil {
		return fail(err)
	}
	if err := checkAccesses(accesses, p.Dims, len(p.Reductions) > 0); err != nil {
		return fail(err)
	}
	names := map[string]bool{p.Name: true}
	for _, a := range accesses {
		if a.Name == p.Name {
			return fail(fmt.Errorf("an access must not have its name"))
		}
		if p.linear != nil && a.Constant[0] {
			return fail(fmt.Errorf("access %q: linear stencils need a value at each point of a row", a.Name))
		}
		names[a.Name] = true
	}
	for _, r := range p.Reductions {
		if err := checkName(r.Name); err != nil {
			return fail(fmt.Errorf("reduction %w", err))
		}
		if names[r.Name] || !slices.Contains([]Operation{Sum, Max, Min}, r.Op) {
			return fail(
				fmt.Errorf("reduction %q by %q: names must be distinct, and operations sum, max or min",
					r.Name, r.Op),
			)
		}
		names[r.Name] = true
	}
	if p.Parameters != nil {
		if err := checkParameters(parametersType(p.Parameters)); err != nil {
			return fail(err)
		}
		if v := reflect.ValueOf(p.Parameters); v.Kind() == reflect.Pointer && v.IsNil() {
			return fail(fmt.Errorf("the pointer to its parameters must not be nil, got a %T", p.Parameters))
		}
	}
	return nil
}

// cNumbers are the C names of the kinds with the same layout in Go and C.
var cNumbers = map[reflect.Kind]string{
	reflect.Bool: "bool", reflect.Int8: "signed char", reflect.Uint8: "unsigned char",
	reflect.Int16: "short", reflect.Uint16: "unsigned short", reflect.Int32: "int", reflect.Uint32: "unsigned",
	reflect.Int64: "long long", reflect.Uint64: "unsigned long long",
	reflect.Float32: "float", reflect.Float64: "double",
}

// checkParameters returns an error unless values of the type can be parameters.
func checkParameters(t reflect.Type) error {
	if t == nil || t.Kind() != reflect.Struct || t.NumField() == 0 {
		return fmt.Errorf("parameters must be a struct of numbers, got %v", t)
	}
	if t.Size() > maxParameters {
		return fmt.Errorf("parameters must have at most %d bytes, got %d", maxParameters, t.Size())
	}
	return checkFields(t)
}

func checkFields(t reflect.Type) error {
	switch {
	case cNumbers[t.Kind()] != "":
		return nil
	case t.Kind() == reflect.Array && t.Len() > 0:
		return checkFields(t.Elem())
	case t.Kind() == reflect.Struct && t.NumField() > 0:
		blank := false
		for i := range t.NumField() {
			f := t.Field(i)
			if err := checkName(f.Name); err != nil {
				return fmt.Errorf("field of parameters: %w", err)
			}
			if f.Name == "_" && blank {
				return errors.New("parameters must not have two fields _")
			}
			blank = blank || f.Name == "_"
			if err := checkFields(f.Type); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf(
		"parameters must be numbers of fixed size, and arrays and structs of them, got %v", t)
}

// parametersSource declares struct Parameters, with the Go names of the fields.
func parametersSource(p any) string {
	if p == nil {
		return "struct Parameters {\n\tlong long none;\n};\n"
	}
	t := parametersType(p)
	return fmt.Sprintf("struct Parameters %s;\nstatic_assert(sizeof(Parameters) == %d, \"as in Go\");\n",
		structBody(t, 1), t.Size())
}

func structBody(t reflect.Type, depth int) string {
	var b strings.Builder
	indent := strings.Repeat("\t", depth)
	b.WriteString("{\n")
	for i := range t.NumField() {
		f, of, lengths := t.Field(i), t.Field(i).Type, ""
		for of.Kind() == reflect.Array {
			lengths += fmt.Sprintf("[%d]", of.Len())
			of = of.Elem()
		}
		name := cNumbers[of.Kind()]
		if of.Kind() == reflect.Struct {
			name = "struct " + structBody(of, depth+1)
		}
		fmt.Fprintf(&b, "%s%s %s%s;\n", indent, name, f.Name, lengths)
	}
	b.WriteString(indent[1:] + "}")
	return b.String()
}

// parameterBytes returns the parameters in memory layout, in whole words of 8 bytes. p may be a struct or a
// pointer to one.
func parameterBytes(p any) []byte {
	if p == nil {
		return make([]byte, 8)
	}
	t := parametersType(p)
	bytes := make([]byte, (t.Size()+7)/8*8)
	if v := reflect.ValueOf(p); v.Kind() == reflect.Pointer {
		copy(bytes, unsafe.Slice((*byte)(v.UnsafePointer()), t.Size()))
	} else {
		holder := reflect.New(t)
		holder.Elem().Set(v)
		copy(bytes, unsafe.Slice((*byte)(holder.UnsafePointer()), t.Size()))
	}
	return bytes
}

// frame is struct Frame of site.cuh, of step 0.
func (p Point) frame() []byte {
	frame := make([]byte, 3*8)
	for _, v := range slices.Concat(p.Coordinates.Shift[:], p.Coordinates.Spacing[:]) {
		frame = binary.NativeEndian.AppendUint64(frame, math.Float64bits(v))
	}
	return append(frame, parameterBytes(p.Parameters)...)
}

// parametersType is the struct that Parameters is or points to.
func parametersType(p any) reflect.Type {
	t := reflect.TypeOf(p)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Reduction combines one value of each point, in float64.
type Reduction struct {
	Name string    // in the source
	Op   Operation // sum, max or min
}

// Operation joins the values of a reduction.
type Operation string

// The operations. A NaN among the values makes the result NaN.
const (
	Sum Operation = "sum"
	Max Operation = "max"
	Min Operation = "min"
)

// identity returns the neutral element of the operation.
func (o Operation) identity() float64 {
	return map[Operation]float64{Max: math.Inf(-1), Min: math.Inf(1)}[o]
}

// join joins two values of max or min, like join of totals.cuh.
func (o Operation) join(a, b float64) float64 {
	if o == Max {
		return max(a, b)
	}
	return min(a, b)
}

// Reduced is the result of a reduction over some points.
type Reduced struct {
	op    Operation
	value float64 // unless it is a sum
	sum   sums.Sum
}

// Join adds the result of the same reduction over other points.
func (r *Reduced) Join(other Reduced) {
	r.sum.Join(other.sum)
	if r.op != Sum {
		r.value = r.op.join(r.value, other.value)
	}
}

// Stored is the value of a Reduced without its operation, for other processes.
type Stored struct {
	Value float64  // value of max or min
	Sum   sums.Sum // value of sum
}

// Stored returns the value without the operation.
func (r Reduced) Stored() Stored { return Stored{r.value, r.sum} }

// With returns the same reduction with a value stored by another process.
func (r Reduced) With(s Stored) Reduced { return Reduced{r.op, s.Value, s.Sum} }

// Value returns the value.
func (r Reduced) Value() float64 {
	if r.op == Sum {
		return r.sum.Value()
	}
	return r.value
}

// Row is a row of points along x that a Go counterpart computes. It is valid during the call.
type Row struct {
	N       int // number of points
	I, J, K int // indices of the first point in the whole grid

	function    string // the name of the point function
	accesses    []Access
	reductions  []Reduction
	coordinates Coordinates
	parameters  uintptr // bytes; 0 if there are none
	arrays      Arrays
	frame       []byte
	reduced     [][]float64 // a row of values for each reduction; nil if not requested
	spread      [][]byte    // rows of one value each, of which the function has used some
	used        int
}

// Number is a type of an access' values.
type Number interface {
	float32 | float64 | int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

// At returns the values of an access at an offset from the points of the row. Values at the points
// of a written access are the row to fill. It panics where the source would not compile: of an
// unknown name, another type, or an offset outside the footprint.
func At[T Number](r *Row, access string, dx, dy, dz int) []T {
	return AtComponent[T](r, access, 0, dx, dy, dz)
}

// AtComponent is At for a component of an access.
func AtComponent[T Number](r *Row, access string, component, dx, dy, dz int) []T {
	i := findAccess(r.accesses, access)
	if i < 0 || component < 0 || component >= len(r.arrays[i]) {
		panic(
			fmt.Sprintf("sweep: point function %q: access %q with component %d must exist", r.function, access,
				component),
		)
	}
	o, a := (domain.Vec{dx, dy, dz}), &r.accesses[i]
	if o != (domain.Vec{}) || !a.Write {
		if !a.footprint(component).Has(o) {
			panic(
				fmt.Sprintf("sweep: point function %q: offset of %q must be in its footprint, got %v, footprint %v",
					r.function, access, o,
					a.footprint(component)),
			)
		}
	}
	var zero T
	if size := a.Element.Size(); int(unsafe.Sizeof(zero)) != size {
		panic(fmt.Sprintf("sweep: access %q: element type must be %s, got %T", access, a.Element, zero))
	}
	array := &r.arrays[i][component]
	at := array.Layout.Offset(domain.Vec{r.I + dx, r.J + dy, r.K + dz})
	if array.Layout.Uniform() {
		return spread(r, values[T](array)[at])
	}
	return values[T](array)[at : at+int64(r.N) : at+int64(r.N)]
}

// spread returns a row of one value, of the memory that the row keeps for each call of its function.
func spread[T Number](r *Row, value T) []T {
	if r.used == len(r.spread) {
		r.spread = append(r.spread, nil)
	}
	size := int(unsafe.Sizeof(value)) * r.N
	r.spread[r.used] = slices.Grow(r.spread[r.used][:0], size)[:size]
	row := streams.View[T](r.spread[r.used])
	for i := range row {
		row[i] = value
	}
	r.used++
	return row
}

// values returns all elements of an array of a CPU device.
func values[T any](a *kernels.Array) []T {
	return streams.View[T](a.Data.Memory.Bytes()[a.Data.Offset:][:a.Layout.Bytes()])
}

// Reduced returns the row of values of a reduction, which the Go counterpart fills. If the launch does not compute
// reductions, the values are discarded.
func (r *Row) Reduced(name string) []float64 {
	for i, one := range r.reductions {
		if one.Name == name {
			return r.reduced[i][:r.N]
		}
	}
	panic(fmt.Sprintf("sweep: point function %q: reduction %q must exist", r.function, name))
}

// X returns the position of point i of the row along x.
func (r *Row) X(i int) float64 { return r.coordinate(0, r.I+i) }

// Y and Z return the position of the row.
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
	start := math.Float64frombits(binary.NativeEndian.Uint64(r.frame[8:]))
	return Moment{r.Step(), start, r.Length()}.Time(0)
}

// Length returns the length of the step.
func (r *Row) Length() float64 { return math.Float64frombits(binary.NativeEndian.Uint64(r.frame[16:])) }

// Parameters returns the parameters of the launch, which are of type T.
func Parameters[T any](r *Row) *T {
	var zero T
	if r.parameters == 0 || unsafe.Sizeof(zero) != r.parameters {
		panic(fmt.Sprintf("sweep: point function %q: parameters must have another type, got %T", r.function, zero))
	}
	return (*T)(unsafe.Pointer(&r.frame[frameNumbers*8]))
}
