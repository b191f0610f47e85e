package kernels

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

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
		return Program{}, fmt.Errorf("kernels: a source needs a name and a text; this one is %q with %d bytes", s.Name, len(s.Text))
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

// CheckPassable returns an error unless values of the type can be copied to a kernel: numbers of fixed size, and arrays and structs of
// them. These lie in memory as in C. A type of size 0 needs no copy.
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
