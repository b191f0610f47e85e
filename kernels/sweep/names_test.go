package sweep

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/stencil"
)

// No access can have the name of a macro of the sources around it, which would fail on GPUs alone.
func TestMacrosAreNoNames(t *testing.T) {
	files := test.Must(filepath.Glob("../cu/*.cu*"))(t)
	macro := regexp.MustCompile(`#define (\w+)`)
	for _, file := range append(files, "source.go", "linear.go", "resident_plan.go", "stage.go", "fused.go", "resident.go", "form.go") {
		for _, m := range macro.FindAllStringSubmatch(string(readSource(t, file)), -1) {
			if name := m[1]; checkName(name) == nil {
				t.Errorf("%s defines %s, which is not refused as a name", file, name)
			}
		}
	}
}

// twoFunctions is one source of two functions that have different accesses.
const twoFunctions = `
template <typename P> __device__ __forceinline__ void widen(P &p) {
	p.set(wide[1], p.at(narrow) + 1);
	p.reduce(most, p.at(narrow));
}
template <typename P> __device__ __forceinline__ void shrink(P &p) { p.set(small, p.at(wide[1]) * p.at(wide[0])); }`

// A source may hold functions whose accesses have other names.
func TestTwoFunctionsInOneSource(t *testing.T) {
	testdevices.InTurn(t, 1, 2)
	shrink := sample{
		Point{Name: "shrink", Dims: 2, CUDA: twoFunctions, Elsewhere: []string{"wide", "narrow", "most", "small"}, Go: func(r *Row) {
			a, b, small := AtComponent[float64](r, "wide", 0, 0, 0, 0), AtComponent[float64](r, "wide", 1, 0, 0, 0), At[float64](r, "small", 0, 0, 0)
			for i := range small {
				small[i] = b[i] * a[i]
			}
		}},
		[]Access{{Name: "wide", Element: "float64", Components: 2, Footprint: stencil.Point()}, {Name: "small", Element: "float64", Write: true}},
	}
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) { checkSample(t, set, shrink) })
}
