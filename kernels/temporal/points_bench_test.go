package temporal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/timing"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Diffusion whose coefficient is the square of what diffuses, and two substances that react.
const (
	nonlinear = `template <typename P> __device__ __forceinline__ void nonlinear(P &p) {
	const auto flux = [&](int x, int y, int z) {
		const auto c = p.at(u), n = p.at(u, x, y, z);
		return (c * c + n * n) * (n - c);
	};
	p.set(next_u, p.at(u) + 0.01f * (flux(-1, 0, 0) + flux(1, 0, 0) + flux(0, -1, 0) + flux(0, 1, 0) + flux(0, 0, -1) + flux(0, 0, 1)));
}
`
	reacting = `template <typename P> __device__ __forceinline__ void reacting(P &p) {
	const auto a = p.at(u), b = p.at(v), made = a * b * b;
	p.set(next_u, a + 0.2f * (p.at(u, -1) + p.at(u, 1) + p.at(u, 0, -1) + p.at(u, 0, 1) - 4 * a) - made + 0.05f * (1 - a));
	p.set(next_v, b + 0.1f * (p.at(v, -1) + p.at(v, 1) + p.at(v, 0, -1) + p.at(v, 0, 1) - 4 * b) + made - 0.1f * b);
}
`
)

// BenchmarkPointPasses times all kernels for passes of two point functions on a GPU, between walls, beside the sweep: Gpoint/s counts each level of a
// point.
func BenchmarkPointPasses(b *testing.B) {
	set := testdevices.GPUs(b)
	for _, c := range []pointBench{
		{"nonlinear", nonlinear, []string{"u"}, "float64", domain.Vec{512, 512, 512}},
		{"nonlinear", nonlinear, []string{"u"}, "float32", domain.Vec{512, 512, 512}},
		{"reacting", reacting, []string{"u", "v"}, "float64", domain.Vec{8192, 8192, 1}},
		{"reacting", reacting, []string{"u", "v"}, "float32", domain.Vec{8192, 8192, 1}},
	} {
		c.run(b, set)
	}
}

type pointBench struct {
	name, source string
	fields       []string
	element      sweep.Element
	size         domain.Vec
}

func (c pointBench) run(b *testing.B, set *testdevices.Set) {
	d, dims := set.Devices[0], 3
	if c.size[2] == 1 {
		dims = 2
	}
	f := sweep.Point{Name: c.name, Dims: dims, CUDA: c.source, Go: func(*sweep.Row) { panic("no twin") }}
	w := check(timing.New(d))(b)
	defer w.Close()
	arrays, accesses, next := c.arrays(b, d, w.Stream, dims)
	sweeper := check(sweep.New(set.Compiler, d, f, accesses))(b)
	box := domain.Box{Hi: c.size}
	plain := check(sweeper.Sweep("sweep", arrays, box))(b)
	defer plain.Close()
	c.report(b, w, "sweep", plain.Kernel, 1)
	passes := check(NewPoints(set.Compiler, d, f, accesses, next, arrays))(b)
	defer passes.Close()
	passes.gpu.compileAll()
	sides := slices.Repeat([]Sides{{Fixed, Mirror, Fixed, Mirror, Fixed, Mirror}}, len(accesses))
	for _, one := range passes.gpu.candidates {
		l := check(passes.onGPU("pass", one, arrays, box, sides))(b)
		c.report(b, w, fmt.Sprintf("depth=%d/%v", one.depth, one), l.Kernel, one.depth)
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// arrays are two levels of all fields, those that are read first.
func (c pointBench) arrays(b *testing.B, d *streams.Device, s *streams.Stream, dims int) (arrays sweep.Arrays, accesses []sweep.Access, next []int) {
	var star []domain.Vec
	for a := range dims {
		for _, o := range []int{-1, 1} {
			at := domain.Vec{}
			at[a] = o
			star = append(star, at)
		}
	}
	size := map[sweep.Element]int{"float32": 4, "float64": 8}[c.element]
	l := check(domain.NewLayout(domain.Box{Hi: c.size}, domain.UniformRadius(dims, 1), size))(b)
	for level := range 2 {
		for i, name := range c.fields {
			m := check(d.Alloc(l.Bytes()))(b)
			b.Cleanup(func() { _ = m.Close() })
			if err := fillRandom(d, s, m, kernels.Real(c.element)); err != nil {
				b.Fatal(err)
			}
			arrays = append(arrays, []kernels.Array{{Data: m.All(), Layout: l}})
			if level == 0 {
				accesses, next = append(accesses, sweep.Access{Name: name, Element: c.element, Footprint: stencil.Offsets(append(star, domain.Vec{})...)}), append(next, len(c.fields)+i)
			} else {
				accesses, next = append(accesses, sweep.Access{Name: "next_" + name, Element: c.element, Write: true}), append(next, -1)
			}
		}
	}
	return arrays, accesses, next
}

func (c pointBench) report(b *testing.B, w *timing.Timer, name string, k *streams.Kernel, depth int) {
	b.Run(fmt.Sprintf("%s/%s/%s", c.name, c.element, name), func(b *testing.B) {
		var took []time.Duration
		for range 8 {
			took = append(took, check(w.Each(k, 1))(b))
		}
		slices.Sort(took)
		for b.Loop() {
		}
		b.ReportMetric(float64(c.size[0]*c.size[1]*c.size[2]*depth)/float64(took[len(took)/2].Nanoseconds()), "Gpoint/s")
		b.ReportMetric(0, "ns/op")
	})
}

func check[T any](v T, err error) func(b *testing.B) T {
	return func(b *testing.B) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}
