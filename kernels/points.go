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

// View is struct View of cu/halox.cuh: an array as a caller's own kernel sees
// it, indexed by the global indices of its points.
type View struct {
	Origin       uint64 // address of point 0, 0, 0, which may lie outside
	Pitch, Plane int64
}

// View returns the array for a kernel of a GPU.
func (a Array) View() View {
	first := a.Layout.Offset(domain.Vec{}) * int64(a.Layout.ElementSize)
	return View{a.Data.Address() + uint64(first), a.Layout.Pitch, a.Layout.Plane}
}

// Values is an array as the host version of a kernel sees it: point (x, y, z),
// global indices, is Data[Index(x, y, z)], and the next ones along y and z lie
// Pitch and Plane elements further. Of an array on a GPU, Data is nil.
type Values[T any] struct {
	Data         []T
	Pitch, Plane int
	origin       int
}

// ValuesOf returns an array whose elements, all values of a point, are of type T. It panics if they are
// of another size. Only kernels of its device may touch the values while streams run.
func ValuesOf[T any](a Array) Values[T] {
	l := a.Layout
	if size := unsafe.Sizeof(*new(T)); uint64(size) != uint64(l.ElementSize) {
		panic(
			fmt.Sprintf("kernels: values of type %v, of %d bytes, of an array with elements of %d",
				reflect.TypeFor[T](), size, l.ElementSize),
		)
	}
	v := Values[T]{Pitch: int(l.Pitch), Plane: int(l.Plane), origin: int(l.Offset(domain.Vec{}))}
	if a.Data.Memory.Bytes() != nil {
		v.Data = launch.Values[T](a.Data)
	}
	return v
}

// Index returns the place of a point, which is owned or a ghost. A field of two
// dimensions has z = 0.
func (v Values[T]) Index(x, y, z int) int { return v.origin + x + y*v.Pitch + z*v.Plane }

// maxBoxes is how many boxes one launch may work on.
const maxBoxes = 6

// PointSpec is a launch of a caller's own kernel that works point by point.
type PointSpec[T any] struct {
	Name   string       // for errors and traces
	Work   streams.Work // for traces; none is streams.OtherWork
	Arrays []Array      // that it touches, all on its device
	Boxes  []domain.Box // whose points it works on; they do not overlap

	// On a host device: what to do with a row of points, x0 <= x < x1.
	Row func(x0, x1, y, z int)

	// On a GPU: the kernel, with a parameter of struct Points<T>, see
	// cu/halox.cuh, and what T is then, see LaunchSpec; struct{} is an empty struct there.
	Function streams.Function
	Argument T
}

// Points makes a launch ready that has a thread for every point of the boxes. At
// most six of them may hold points, as many as domain.Split cuts a boundary
// region into; over none the launch does nothing.
func Points[T any](d *streams.Device, spec PointSpec[T]) (*streams.Kernel, error) {
	if unsafe.Sizeof(spec.Argument) > 0 {
		if err := passable(reflect.TypeFor[T]()); err != nil {
			return nil, fmt.Errorf("kernels: %s: argument: %w", spec.Name, err)
		}
		return pointsOf(d, spec)
	}
	// An empty struct takes a byte in C++, and the boxes begin 8 bytes after it.
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
			return nil, fmt.Errorf("kernels: %s over %d boxes; must be at most %d",
				spec.Name, len(spec.Boxes), maxBoxes)
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

// Source is CUDA C++ of a caller's own. Its text comes after cu/halox.cuh, which
// gives it i64, View and Points, and is compiled with the options of
// halox's own kernels: C++17, and no contraction of products and sums, so that a
// host version that does the same operations gives the same bits.
type Source struct {
	Name    string   // what the compiler's messages call it: "wave.cu"
	Text    string   // kernels are extern "C" and have one parameter, a struct
	Defines []string // NAME=VALUE or NAME
	Mirrors []Mirror // what it shares with Go, to be compared as it is compiled
	Headers []Header // that were generated for it; those of cu/ it includes by their names
}

// program returns the source as this package compiles it.
func (s Source) program() (Program, error) {
	if s.Name == "" || s.Text == "" {
		return Program{}, fmt.Errorf("kernels: a source needs a name and a text; this one is %q with %d bytes", s.Name,
			len(s.Text))
	}
	return Program{File: s.Name, Defines: s.Defines, Mirrors: s.Mirrors, Headers: s.Headers, own: s.Text}, nil
}

// Compile compiles the source for an architecture, as "sm_90", and returns the
// image. It needs NVRTC but no GPU: a test can see that kernels compile for GPUs
// that are not at hand. To run them, see Functions.
func (c *Compiler) Compile(s Source, arch string) ([]byte, error) {
	p, err := s.program()
	if err != nil {
		return nil, err
	}
	return c.Image(p, arch)
}

// Functions returns the named kernels of the source, compiled for the device and
// loaded on it, for Launch and Points. What was compiled once is kept, on disk too. A
// device that runs Go needs no functions: there they are nil, and nothing is compiled.
func (c *Compiler) Functions(d *streams.Device, s Source, names ...string) ([]streams.Function, error) {
	p, err := s.program()
	if err != nil {
		return nil, err
	}
	return c.Load(d, p, names...)
}

// LaunchSpec is a launch of a caller's own kernel, in the form of either
// backend. PointSpec is simpler for a kernel that works point by point.
type LaunchSpec[T any] struct {
	Name string         // for errors and traces
	Work streams.Work   // for traces; none is streams.OtherWork
	Uses []streams.Span // all memory that it touches, on its own device or pinned

	// On a host device: what to run, in the stream's own goroutine.
	Host func()

	// On a GPU: the kernel, its geometry and dynamic shared memory, and its only
	// parameter. T holds no pointers and lies in memory as the C struct does:
	// numbers of fixed size, and arrays and structs of them. Device memory is
	// passed as its address, a uint64, or as a View.
	Function    streams.Function
	Grid, Block [3]int
	Shared      int // bytes
	Argument    T
}

// Launch makes a launch of a caller's own kernel ready for the device. T is struct{} where the
// kernel has no parameter.
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

// fixed are the kinds that Go and C store alike.
var fixed = []reflect.Kind{
	reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
	reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64,
}

// CheckPassable returns an error unless values of the type can be copied to a kernel: numbers of fixed size, and arrays
// and structs of them. These lie in memory as in C. A type of size 0 needs no copy.
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
		return fmt.Errorf("%v has another size in C: use %v32 or %v64", t, t, t)
	}
	return fmt.Errorf("a kernel cannot be given a %v: pass numbers, and memory by its address", t)
}
