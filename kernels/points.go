package kernels

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// View is struct View of cu/halox.cuh: an array for user kernels, indexed by the global indices of its points. In an
// array with a layout that is Uniform, all points of a row are at x = 0; this also holds for Values.
type View struct {
	Origin uint64 // address of point 0, 0, 0, which may be outside the array
	Pitch  int64  // distance between rows, in elements
	Plane  int64  // distance between planes, in elements
}

// View returns the array for a kernel of a GPU.
func (a Array) View() View {
	first := a.Layout.Offset(domain.Vec{}) * int64(a.Layout.ElementSize)
	return View{a.Data.Address() + uint64(first), a.Layout.Pitch, a.Layout.Plane}
}

// Values is an array for the Go form of a kernel: point (x, y, z), in global indices, is Data[Index(x, y, z)]. For
// an array on a GPU, Data is nil.
type Values[T any] struct {
	Data   []T // all elements of the array
	Pitch  int // distance between rows, in elements
	Plane  int // distance between planes, in elements
	origin int
}

// ValuesOf returns an array whose elements, all values of a point, are of type T. It panics if their sizes differ.
// Only kernels of its device may access the values while streams run.
func ValuesOf[T any](a Array) Values[T] {
	l := a.Layout
	if size := unsafe.Sizeof(*new(T)); uint64(size) != uint64(l.ElementSize) {
		panic(
			fmt.Sprintf("kernels: values of type %v and %d bytes: elements must have %d bytes",
				reflect.TypeFor[T](), size, l.ElementSize),
		)
	}
	v := Values[T]{Pitch: int(l.Pitch), Plane: int(l.Plane), origin: int(l.Offset(domain.Vec{}))}
	if a.Data.Memory.Bytes() != nil {
		v.Data = launch.Values[T](a.Data)
	}
	return v
}

// Index returns the index of a point, owned or ghost. A field of two dimensions has z = 0.
func (v Values[T]) Index(x, y, z int) int { return v.origin + x + y*v.Pitch + z*v.Plane }

// maxBoxes is the largest number of boxes of one launch.
const maxBoxes = 6

// PointSpec describes a launch of a user kernel that works point by point.
type PointSpec[T any] struct {
	Name   string       // for errors and traces
	Work   streams.Work // for traces; default streams.OtherWork
	Arrays []Array      // arrays that it accesses, all on its device
	Boxes  []domain.Box // points that it works on; must not overlap

	// Row is the Go form, for CPU devices: it processes a row of points, x0 <= x < x1.
	Row func(x0, x1, y, z int)

	// Function is the CUDA form: the kernel, with a parameter of struct Points<T>, see cu/halox.cuh.
	Function streams.Function
	Argument T // value of T in the parameter, see LaunchSpec; struct{} is an empty struct in C++
}

// Points prepares a launch with one thread per point of the boxes. At most six of them may contain points, the
// number of boxes into which domain.Split divides a boundary region. If none does, the launch does nothing.
func Points[T any](d *streams.Device, spec PointSpec[T]) (*streams.Kernel, error) {
	if unsafe.Sizeof(spec.Argument) > 0 {
		if err := passable(reflect.TypeFor[T]()); err != nil {
			return nil, fmt.Errorf("kernels: %s: argument: %w", spec.Name, err)
		}
		return pointsOf(d, spec)
	}
	// An empty struct has one byte in C++, and the boxes begin 8 bytes after it.
	return pointsOf(d, PointSpec[int64]{
		Name: spec.Name, Work: spec.Work, Arrays: spec.Arrays, Boxes: spec.Boxes, Row: spec.Row,
		Function: spec.Function,
	})
}

func pointsOf[T any](d *streams.Device, spec PointSpec[T]) (*streams.Kernel, error) {
	type points struct {
		argument T
		box      [maxBoxes]box
	}
	arg := points{argument: spec.Argument}
	grid, block := [3]int{1, 1, 1}, [3]int{launch.BlockSize, 1, 1}
	n := 0
	for _, b := range spec.Boxes {
		if b.Empty() {
			continue
		}
		if n == maxBoxes {
			return nil, fmt.Errorf("kernels: %s: number of boxes must be at most %d, got %d",
				spec.Name, maxBoxes, len(spec.Boxes))
		}
		arg.box[n] = boxOf(b)
		n++
		grid[0], grid[1] = max(grid[0], launch.FlatGrid(b.Points())), n
	}
	var uses []streams.Span
	for _, a := range spec.Arrays {
		uses = append(uses, a.Data)
	}
	var host func()
	if spec.Row != nil {
		host = func() { eachOf(arg.box[:n], spec.Row) }
	}
	return Launch(d, LaunchSpec[points]{
		Name: spec.Name, Work: spec.Work, Uses: uses, Host: host,
		Function: spec.Function, Grid: grid, Block: block, Argument: arg,
	})
}

// box is struct Box of cu/halox.cuh.
type box struct{ lo, hi [3]int64 }

func boxOf(b domain.Box) (c box) {
	for a := range 3 {
		c.lo[a], c.hi[a] = int64(b.Lo[a]), int64(b.Hi[a])
	}
	return c
}

// eachOf calls row for every row of the boxes.
func eachOf(boxes []box, row func(x0, x1, y, z int)) {
	for _, b := range boxes {
		for z := b.lo[2]; z < b.hi[2]; z++ {
			for y := b.lo[1]; y < b.hi[1]; y++ {
				row(int(b.lo[0]), int(b.hi[0]), int(y), int(z))
			}
		}
	}
}

// Source is CUDA C++ of a user. Its text is compiled after cu/halox.cuh, which defines i64, View and Points, and
// with the options of halox's own kernels: C++17, without contraction of products and sums, so that a Go form with
// the same operations is bitwise identical.
type Source struct {
	Name    string   // name in compiler messages: "wave.cu"
	Text    string   // kernels are extern "C" and have one parameter, a struct
	Defines []string // NAME=VALUE or NAME; default none
	Mirrors []Mirror // types and constants shared with Go, checked by the compiler; default none
	Headers []Header // generated headers; those of cu/ are included by name; default none
}

// program returns the source as a Program.
func (s Source) program() (Program, error) {
	if s.Name == "" || s.Text == "" {
		return Program{}, fmt.Errorf("kernels: source must have a name and a text, got name %q and %d bytes", s.Name,
			len(s.Text))
	}
	return Program{File: s.Name, Defines: s.Defines, Mirrors: s.Mirrors, Headers: s.Headers, own: s.Text}, nil
}

// Compile compiles the source for an architecture, such as "sm_90", and returns the image. It needs NVRTC but no
// GPU, so tests can compile kernels for GPUs that are not installed. To run kernels, see Functions.
func (c *Compiler) Compile(s Source, arch string) ([]byte, error) {
	p, err := s.program()
	if err != nil {
		return nil, err
	}
	return c.Image(p, arch)
}

// Functions returns the named kernels of the source, compiled for the device and loaded on it, for Launch and
// Points. Compiled sources are kept, on disk too. On a CPU device the functions are nil, and nothing is compiled.
func (c *Compiler) Functions(d *streams.Device, s Source, names ...string) ([]streams.Function, error) {
	p, err := s.program()
	if err != nil {
		return nil, err
	}
	return c.Load(d, p, names...)
}

// LaunchSpec describes a launch of a user kernel, in the form of either backend. PointSpec is simpler for kernels
// that work point by point.
type LaunchSpec[T any] struct {
	Name string         // for errors and traces
	Work streams.Work   // for traces; default streams.OtherWork
	Uses []streams.Span // all memory that it accesses, on its device or pinned

	// Host is the Go form, for CPU devices. It runs in the goroutine of the stream.
	Host func()

	// Function is the CUDA form.
	Function streams.Function
	Grid     [3]int // blocks per axis
	Block    [3]int // threads per axis
	Shared   int    // bytes of dynamic shared memory; default 0
	// Argument is the only parameter, without pointers: numbers of fixed size, and arrays and structs of them, with
	// the layout of the C struct. Device memory is passed as its address, a uint64, or as a View.
	Argument T
}

// Launch prepares a launch of a user kernel on the device. T is struct{} if the kernel has no parameter.
func Launch[T any](d *streams.Device, spec LaunchSpec[T]) (*streams.Kernel, error) {
	if err := CheckPassable(reflect.TypeFor[T]()); err != nil {
		return nil, fmt.Errorf("kernels: %s: argument: %w", spec.Name, err)
	}
	return d.NewKernel(streams.KernelSpec{
		Name: spec.Name, Work: spec.Work, Uses: spec.Uses, Run: spec.Host,
		Function: spec.Function, Grid: spec.Grid, Block: spec.Block, Shared: spec.Shared,
		Argument: launch.Argument(&spec.Argument),
	})
}

// fixed are the kinds with the same layout in Go and C.
var fixed = []reflect.Kind{
	reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
	reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64,
}

// CheckPassable returns an error unless values of the type can be copied to a kernel: numbers of fixed size, and
// arrays and structs of them, which have the same layout in C. A type of size 0 needs no copy.
func CheckPassable(t reflect.Type) error {
	if t.Size() == 0 {
		return nil
	}
	return passable(t)
}

func passable(t reflect.Type) error {
	switch {
	case slices.Contains(fixed, t.Kind()):
		return nil
	case t.Kind() == reflect.Array:
		return passable(t.Elem())
	case t.Kind() == reflect.Struct && t.NumField() > 0:
		for i := range t.NumField() {
			if err := passable(t.Field(i).Type); err != nil {
				return fmt.Errorf("%s: %w", t.Field(i).Name, err)
			}
		}
		return nil
	case t.Kind() == reflect.Int || t.Kind() == reflect.Uint:
		return fmt.Errorf("%v must not be used, since its size differs in C: use %v32 or %v64", t, t, t)
	}
	return fmt.Errorf("type must be numbers of fixed size, got %v: pass memory by its address", t)
}
