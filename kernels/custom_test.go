package kernels_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/streams"
)

// scale is a user kernel: y = factor * x at every point.
var scale = kernels.Source{Name: "scale.cu", Defines: []string{"REAL=double"}, Text: `
struct Scale { View<REAL> y; View<const REAL> x; REAL factor; };
extern "C" __global__ void scale(const __grid_constant__ Points<Scale> p) {
	p.each([&](i64 x, i64 y, i64 z) { p.arg.y(x, y, z) = p.arg.factor * p.arg.x(x, y, z); });
}
`}

type scaleArgs struct {
	Y, X   kernels.View
	Factor float64
}

// scaleOver prepares a launch of scale from x to y.
func scaleOver(b *kerneltest.Bench, y, x kernels.Array, boxes ...domain.Box) *streams.Kernel {
	b.T.Helper()
	f := test.Must(b.Compiler.Functions(b.Device, scale, "scale"))(b.T)
	to, from := kernels.ValuesOf[float64](y), kernels.ValuesOf[float64](x)
	return test.Must(kernels.Points(b.Device, kernels.PointSpec[scaleArgs]{
		Name: "scale", Arrays: []kernels.Array{y, x}, Boxes: boxes,
		Function: f[0], Argument: scaleArgs{y.View(), x.View(), 3},
		Row: func(x0, x1, y, z int) {
			for x := x0; x < x1; x++ {
				to.Data[to.Index(x, y, z)] = 3 * from.Data[from.Index(x, y, z)]
			}
		},
	}))(b.T)
}

// ValuesOf panics for elements of another size.
func TestValuesOfAnotherSize(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	a := b.Array(domain.Box{Hi: domain.Vec{4, 2, 2}}, 1, nil) // float64
	for name, of := range map[string]func() int{
		"half as large": func() int { return len(kernels.ValuesOf[int32](a).Data) },
		"vectors":       func() int { return len(kernels.ValuesOf[[2]float64](a).Data) },
		"of no size":    func() int { return len(kernels.ValuesOf[struct{}](a).Data) },
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "elements must have 8 bytes") {
					t.Errorf("%s: got %v, want a panic that names the 8 bytes of an element", name, p)
				}
			}()
			t.Errorf("%s: got %d values", name, of())
		}()
	}
	if n := len(kernels.ValuesOf[[8]byte](a).Data); int64(n) != a.Layout.Length {
		t.Errorf("got %d values of the same size, want %d", n, a.Layout.Length)
	}
}

// A user kernel changes exactly the points of its boxes, for any layouts of its arrays.
func TestPoints(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	owned := domain.Box{Lo: domain.Vec{5, -2, 7}, Hi: domain.Vec{22, 9, 12}}
	interior, boundary := domain.Split(owned, domain.UniformRadius(3, 2))
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for _, c := range []struct {
			name  string
			boxes []domain.Box
		}{{"whole", []domain.Box{owned}}, {"boundary", boundary}, {"interior", []domain.Box{interior}}, {"nothing", []domain.Box{{}}}} {
			t.Run(c.name, func(t *testing.T) {
				b := kerneltest.NewBench(t, s)
				x, y := b.Array(owned, 3, nil), b.Array(owned.Grow(domain.UniformRadius(2, 1)), 2, nil)
				in, before := kerneltest.Noise(x.Layout.Length), kerneltest.Noise(y.Layout.Length)
				kerneltest.Put(b, x.Data, in)
				kerneltest.Put(b, y.Data, before)
				b.Do(b.Stream.Launch(scaleOver(b, y, x, c.boxes...)))
				want := append([]float64(nil), before...)
				for _, box := range c.boxes {
					kerneltest.EachPoint(box, func(p domain.Vec) { want[y.Layout.Offset(p)] = 3 * in[x.Layout.Offset(p)] })
				}
				for i, got := range kerneltest.Get[float64](b, y.Data) {
					if got != want[i] {
						t.Fatalf("element %d: got %v, want %v", i, got, want[i])
					}
				}
			})
		}
	})
}

// A point kernel needs no argument besides the boxes: this one has its destination in its defines.
func TestPointsWithoutArgument(t *testing.T) {
	owned := domain.Box{Lo: domain.Vec{5, -2, 7}, Hi: domain.Vec{22, 9, 12}}
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		y := b.Array(owned, 3, nil)
		before := kerneltest.Noise(y.Layout.Length)
		kerneltest.Put(b, y.Data, before)
		box, v, to := owned.Grow(domain.UniformRadius(3, 1)), y.View(), kernels.ValuesOf[float64](y)
		f := test.Must(b.Compiler.Functions(b.Device, kernels.Source{Name: "number.cu", Text: `
struct None {};
extern "C" __global__ void number(const __grid_constant__ Points<None> p) {
	const View<double> to = {ORIGIN, PITCH, PLANE};
	p.each([&](i64 x, i64 y, i64 z) { to(x, y, z) = (double)(x + 100 * y + 10000 * z); });
}`, Defines: []string{fmt.Sprintf("ORIGIN=(double*)%dull", v.Origin), fmt.Sprintf("PITCH=%d", v.Pitch), fmt.Sprintf("PLANE=%d", v.Plane)}}, "number"))(t)
		k := test.Must(kernels.Points(b.Device, kernels.PointSpec[struct{}]{
			Name: "number", Arrays: []kernels.Array{y}, Boxes: []domain.Box{box}, Function: f[0],
			Row: func(x0, x1, y, z int) {
				for x := x0; x < x1; x++ {
					to.Data[to.Index(x, y, z)] = float64(x + 100*y + 10000*z)
				}
			},
		}))(t)
		b.Do(b.Stream.Launch(k))
		want := append([]float64(nil), before...)
		kerneltest.EachPoint(box, func(p domain.Vec) { want[y.Layout.Offset(p)] = float64(p[0] + 100*p[1] + 10000*p[2]) })
		for i, got := range kerneltest.Get[float64](b, y.Data) {
			if got != want[i] {
				t.Fatalf("element %d: got %v, want %v", i, got, want[i])
			}
		}
	})
}

// Invalid arguments of a launch are rejected with the reason.
func TestLaunchErrors(t *testing.T) {
	set := testdevices.Host(t, 2)
	d := set.Devices[0]
	for _, c := range []struct {
		says string
		err  error
	}{
		{"argument: Count: int must not be used, since its size differs in C: use int32 or int64", launch(d, struct{ Count int }{})},
		{"argument: P: type must be numbers of fixed size, got *float64: pass memory by its address", launch(d, struct{ P *float64 }{})},
		{"type must be numbers of fixed size, got []float64", launch(d, struct{ A [2][]float64 }{})},
		{"type must be numbers of fixed size, got struct {}", launch(d, struct {
			A float64
			B struct{}
		}{})},
		{"kernels: k: argument: P: type must be numbers of fixed size, got *float64", errorOf(kernels.Points(d, kernels.PointSpec[struct{ P *float64 }]{Name: "k"}))},
		{"must have a Go function", errorOf(kernels.Points(d, kernels.PointSpec[int64]{Name: "no row"}))},
		{"the device is nil", errorOf(kernels.Launch(nil, kernels.LaunchSpec[int64]{Host: func() {}}))},
		{"the device is nil", errorOf(set.Compiler.Load(nil, kernels.Program{}))},
		{"the compiler is nil", errorOf((*kernels.Compiler)(nil).Load(d, kernels.Program{}))},
		{"number of boxes must be at most 6, got 7", points(d, make([]domain.Box, 7))},
		{"must have a name and a text", functions(set.Compiler, d, kernels.Source{Name: "empty.cu"})},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("got %v, want an error with %q", c.err, c.says)
		}
	}
	if err := launch(d, struct {
		A float32
		B [3]int64
		C kernels.View
	}{}); err != nil {
		t.Error(err)
	}
	if err := launch(d, struct{}{}); err != nil {
		t.Errorf("a kernel without a parameter: got %v", err)
	}
	m := test.Must(set.Devices[1].Alloc(8))(t)
	if _, err := kernels.Launch(d, kernels.LaunchSpec[int64]{Name: "far", Host: func() {}, Uses: []streams.Span{m.All()}}); err == nil {
		t.Error("memory of another device: got no error")
	}
}

func errorOf(_ any, err error) error { return err }

func launch[T any](d *streams.Device, arg T) error {
	_, err := kernels.Launch(d, kernels.LaunchSpec[T]{Name: "k", Host: func() {}, Argument: arg})
	return err
}

func points(d *streams.Device, boxes []domain.Box) error {
	for i := range boxes {
		boxes[i].Hi = domain.Vec{1, 1, 1}
	}
	_, err := kernels.Points(d, kernels.PointSpec[int64]{Name: "k", Boxes: boxes, Row: func(_, _, _, _ int) {}})
	return err
}

func functions(c *kernels.Compiler, d *streams.Device, s kernels.Source) error {
	_, err := c.Functions(d, s, "k")
	return err
}

// Kernel parameters have the same layout in Go and CUDA.
func TestLayoutOfParameters(t *testing.T) {
	type uneven struct {
		Y      kernels.View
		Factor float32
		Flag   bool
		Count  int16
		Deep   [3]struct {
			A int8
			B int64
		}
		Last float32
	}
	var u uneven
	s := kernels.Source{Name: "uneven.cu", Text: `
struct Uneven {
	View<float> y;
	float factor;
	bool flag;
	short count;
	struct { signed char a; i64 b; } deep[3];
	float last;
};
static_assert(sizeof(Uneven) == SIZE && sizeof(View<float>) == VIEW && sizeof(Uneven::deep) == DEEP, "size");
static_assert(sizeof(Points<Uneven>) == SIZE + 6 * sizeof(Box) && sizeof(Box) == 48, "points");
`}
	for name, value := range map[string]uintptr{
		"SIZE": unsafe.Sizeof(u), "VIEW": unsafe.Sizeof(u.Y), "DEEP": unsafe.Sizeof(u.Deep),
	} {
		s.Defines = append(s.Defines, fmt.Sprintf("%s=%d", name, value))
	}
	if _, err := testdevices.Compiler(t).Compile(s, "sm_90"); err != nil {
		t.Error(err)
	}
	test.Report(t, launch(testdevices.Host(t, 1).Devices[0], u))
}

// A user source compiles without a GPU. Its errors have its own line numbers.
func TestCompileOwnSource(t *testing.T) {
	testdevices.Compile(t, scale)
	bad := scale
	bad.Text = "\n\nfloat wrong;;;\nstruct { int x } y;\n"
	_, err := testdevices.Compiler(t).Compile(bad, "sm_90")
	test.Says(t, err, "scale.cu(4)")
}
