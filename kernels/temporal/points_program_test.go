package temporal

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// sampleFunctions are point functions of the kinds that simulation codes have, with their accesses and next levels.
func sampleFunctions() []sampleFunction {
	return []sampleFunction{diffusion("double", "float64"), diffusion("float", "float32"), grayscott(), cubic()}
}

type sampleFunction struct {
	point    sweep.Point
	accesses []sweep.Access
	next     []int
}

// diffusion is nonlinear, in a medium that differs from place to place.
func diffusion(real string, e sweep.Element) sampleFunction {
	return sampleFunction{
		sweep.Point{Name: "diffusion", Dims: 3, Go: func(*sweep.Row) {}, Parameters: scale{0.1}, CUDA: `
typedef ` + real + ` Real;
template <typename P> __device__ __forceinline__ Real flow(const P &p, int dx, int dy, int dz) {
	const Real here = p.at(u), there = p.at(u, dx, dy, dz);
	return (1 + (Real)0.5 * (here * here + there * there)) * (there - here);
}
template <typename P> __device__ __forceinline__ void diffusion(P &p) {
	const Real sum = flow(p, -1, 0, 0) + flow(p, 1, 0, 0) + flow(p, 0, -1, 0) + flow(p, 0, 1, 0) + flow(p, 0, 0, -1) + flow(p, 0, 0, 1);
	p.set(next, p.at(u) + (Real)p.parameters.Eighth * p.at(medium) * sum);
}`},
		[]sweep.Access{{Name: "u", Element: e, Footprint: stencil.Star(3, 1)}, {Name: "medium", Element: e, Footprint: stencil.Point()}, {Name: "next", Element: e, Write: true}},
		[]int{2, -1, -1},
	}
}

// grayscott steps two variables.
func grayscott() sampleFunction {
	box := stencil.Box(2, 1)
	return sampleFunction{
		sweep.Point{Name: "gray", Dims: 2, Go: func(*sweep.Row) {}, CUDA: `
template <typename P, typename A> __device__ __forceinline__ double laplacian(const P &p, A f) {
	const double faces = p.at(f, -1, 0) + p.at(f, 1, 0) + p.at(f, 0, -1) + p.at(f, 0, 1);
	const double corners = p.at(f, -1, -1) + p.at(f, 1, -1) + p.at(f, -1, 1) + p.at(f, 1, 1);
	return 0.2 * faces + 0.05 * corners - p.at(f);
}
template <typename P> __device__ __forceinline__ void gray(P &p) {
	const double made = p.at(u) * p.at(v) * p.at(v);
	p.set(next_u, p.at(u) + 0.2 * laplacian(p, u) - made + 0.04 * (1 - p.at(u)));
	p.set(next_v, p.at(v) + 0.1 * laplacian(p, v) + made - 0.1 * p.at(v));
}`},
		[]sweep.Access{{Name: "u", Element: "float64", Footprint: box}, {Name: "v", Element: "float64", Footprint: box}, {Name: "next_u", Element: "float64", Write: true}, {Name: "next_v", Element: "float64", Write: true}},
		[]int{2, 3, -1, -1},
	}
}

// cubic steps three components that are read two points away.
func cubic() sampleFunction {
	return sampleFunction{
		sweep.Point{Name: "cubic", Dims: 3, Go: func(*sweep.Row) {}, CUDA: `
template <typename P> __device__ __forceinline__ void cubic(P &p) {
#pragma unroll
	for (int q = 0; q < 3; q++) {
		double sum = 0;
#pragma unroll
		for (int d = 1; d < 3; d++)
			sum += (p.at(f[q], d, 0, 0) + p.at(f[q], -d, 0, 0) + p.at(f[q], 0, d, 0) + p.at(f[q], 0, -d, 0) + p.at(f[q], 0, 0, d) + p.at(f[q], 0, 0, -d)) / d;
		const double a = p.at(f[q]), b = p.at(f[(q + 1) % 3]);
		p.set(next[q], a + 0.01 * sum - a * b * b + (double)p.step() * p.x());
	}
}`},
		[]sweep.Access{{Name: "f", Element: "float64", Components: 3, Footprint: stencil.Star(3, 2)}, {Name: "next", Element: "float64", Components: 3, Write: true}},
		[]int{1, -1},
	}
}

// passesOn returns the passes of a sample on a device with so much shared memory for a block.
func (s sampleFunction) passesOn(t *testing.T, c *kernels.Compiler, d *streams.Device) *Points {
	t.Helper()
	var like sweep.Arrays
	for _, a := range s.accesses {
		var all []kernels.Array
		for range max(1, a.Components) {
			l := kerneltest.Must(domain.NewLayout(domain.Box{Hi: domain.Vec{1, 1, 1}}, domain.UniformRadius(s.point.Dims, 2), a.Element.Size()))(t)
			m := kerneltest.Must(d.Alloc(l.Bytes()))(t)
			t.Cleanup(func() { m.Close() })
			all = append(all, kernels.Array{Data: m.All(), Layout: l})
		}
		like = append(like, all)
	}
	return kerneltest.Must(NewPoints(c, d, s.point, s.accesses, s.next, like))(t)
}

// levels.cuh, with which editors read the sources, is the one that Go writes for the wave of accesses.cuh, as if it had two levels.
func TestLevelsOfEditors(t *testing.T) {
	const file = "../cu/levels.cuh"
	wave := sampleFunction{
		sweep.Point{Name: "wave", Dims: 3, Go: func(*sweep.Row) {}, CUDA: "wave", Parameters: scale{}},
		[]sweep.Access{{Name: "u", Element: "float64", Footprint: stencil.Star(3, 1)}, {Name: "old", Element: "float64", Footprint: stencil.Point()}, {Name: "next", Element: "float64", Write: true}},
		[]int{2, -1, -1},
	}
	p := wave.passesOn(t, nil, testdevices.Host(t, 1).Devices[0])
	argument, _ := p.argument(make(sweep.Arrays, 0), domain.Box{}, make([]Sides, 3), 0)
	const arrays, strides = 3, 1
	want := p.levelsSource(pointsForm{depth: 2, wide: 32, high: 16, turn: 1, rows: 2, threads: 512, blocks: 1}, len(argument)+8*(arrays+2*strides))
	got, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("SKIPPED: the CUDA sources are not here: ", err)
	}
	if string(got) != want {
		t.Errorf("%s is not what points_source.go writes:\n%s", file, want)
		if os.Getenv("UPDATE") != "" {
			os.WriteFile(file, []byte(want), 0o644)
		}
	}
}
