package step

import (
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// compiled returns the programs to compile for GPUs: all in long tests, otherwise one of three stars per tiling
// and type, selected by the seed.
func compiled() []kernels.Program {
	if testdevices.Long() {
		return programs()
	}
	var some []kernels.Program
	for i, each := range kinds() {
		if testdevices.Turn(i, 6, 6) {
			some = append(some, each[(i+i/3+testdevices.Seed()/3)%len(each)])
		}
	}
	return some
}

// programs returns all programs that this package may compile.
func programs() []kernels.Program { return slices.Concat(kinds()...) }

// kinds returns the programs of each star, tiling and type, with norms if a block has enough threads for them.
func kinds() (all [][]kernels.Program) {
	for _, r := range []domain.Element{domain.Float32, domain.Float64} {
		for _, s := range everyStar() {
			of := func(checks bool, program func(v variant, mode sums.Mode) kernels.Program) {
				each := []kernels.Program{program(onlySteps, sums.Reproducible)}
				for _, mode := range sums.Modes() {
					if each = append(each, program(lastNorms, mode)); checks {
						each = append(each, program(allNorms, mode))
					}
				}
				all = append(all, each)
			}
			for _, b := range everyTiling(s, r) {
				checked, ok := b.checking(200 << 10)
				of(ok, func(v variant, mode sums.Mode) kernels.Program {
					return tileProgram(s, r, map[bool]*tiling{true: &checked, false: &b}[v == allNorms], v, mode)
				})
			}
			for _, b := range everyWideTiling(s, r) {
				checked, ok := b.checking()
				of(ok, func(v variant, mode sums.Mode) kernels.Program {
					return wideProgram(s, r, map[bool]*wideTiling{true: &checked, false: &b}[v == allNorms], v, mode)
				})
			}
		}
	}
	return all
}

// everyWideTiling returns tilings of 64^3, 128^3 and 1024^2 on some GPUs, and one with the largest number of
// threads per block.
func everyWideTiling(s stencil.Stencil, r domain.Element) (all []wideTiling) {
	for _, c := range []struct {
		dims  int
		size  [3]int64
		steps int64
		wide  [3]bool
		cores int64
	}{
		{3, [3]int64{64, 64, 16}, 2, [3]bool{false, false, true}, 132}, {3, [3]int64{128, 128, 32}, 2, [3]bool{false, false, true}, 132}, {3, [3]int64{64, 32, 32}, 4, [3]bool{true, true, true}, 132},
		{2, [3]int64{1024, 1, 512}, 3, [3]bool{false, false, true}, 132}, {2, [3]int64{300, 1, 700}, 2, [3]bool{}, 8},
	} {
		if c.dims != s.Dims {
			continue
		}
		if b, ok := bestWideTiling(c.dims, c.size, c.wide, int64(r.Size()), c.steps, tileRoom{c.cores, 227<<10 - wideReserve}); ok {
			all = append(all, b)
		}
	}
	return all
}

// everyTiling returns tilings of all kinds; of those with a part in registers, the one that uses most registers.
func everyTiling(s stencil.Stencil, r domain.Element) []tiling {
	most := maxRegLayersOf(s.Dims, int64(r.Size()))
	if s.Dims == 2 {
		return []tiling{
			{dims: 2, block: [3]int64{1024, 1, 1}}, {dims: 2, block: [3]int64{16, 1, 64}}, {dims: 2, block: [3]int64{500, 1, 2}}, {dims: 2, block: [3]int64{512, 1, 1}, regLayers: most},
		}
	}
	return []tiling{
		{dims: 3, block: [3]int64{32, 32, 1}}, {dims: 3, block: [3]int64{16, 8, 8}}, {dims: 3, block: [3]int64{31, 16, 2}}, {dims: 3, block: [3]int64{32, 16, 1}, regLayers: most},
	}
}

// everyStar returns the stars of radius 1, with equal and with unequal spacings.
func everyStar() (all []stencil.Stencil) {
	for _, spacing := range [][]float64{{0.1, 0.1}, {0.1, 0.2}, {0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
		if s, err := stencil.HeatOf(stencil.Kinds(len(spacing))[0], spacing, 1, 1e-3); err == nil {
			all = append(all, s)
		}
	}
	return all
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs()...) }

func TestEveryArgumentIsMirrored(t *testing.T) { kerneltest.MirrorArguments(t, programs()...) }

func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	kerneltest.CompileWithoutSpills(t, compiled()...)
}

// The kernels of steps do not load through the read-only path, which may be stale for data that other blocks
// change.
func TestStepsAvoidTheReadOnlyPath(t *testing.T) {
	testdevices.InTurn(t, 3, 4)
	testdevices.Once(t)
	c := testdevices.CachingCompiler(t)
	for i, p := range compiled() {
		if !testdevices.Turn(i, 5, 5) {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			if strings.Contains(kerneltest.PTX(t, c, p), "ld.global.nc") {
				t.Error("kernel must not load through the read-only path")
			}
		})
	}
}

func TestWaitsAcquireAndSignalsRelease(t *testing.T) {
	star := everyStar()[0]
	kerneltest.AcquireAndRelease(t, tileProgram(star, domain.Float64, &everyTiling(star, domain.Float64)[0], onlySteps, sums.Reproducible))
	kerneltest.AcquireAndRelease(t, wideProgram(star, domain.Float64, &everyWideTiling(star, domain.Float64)[0], onlySteps, sums.Reproducible))
}

// stencil.cuh, the example for editors, is the generated header of the 7-point star.
func TestStencilHeader(t *testing.T) {
	want := source.Stencil(stencil.StarWeights{Dims: 3, Equal: true, Center: 0.25, Axis: [3]float64{0.125, 0.125, 0.125}}.Stencil(), domain.Float64.Size())
	files, err := kernels.Program{File: "tiles.cu"}.Files()
	if err != nil || files[source.StencilHeader] != want {
		t.Errorf("%v; cu/%s must be:\n%s", err, source.StencilHeader, want)
	}
}
