package sweep

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/stencil"
)

// The CUDA source of every sample is bitwise identical to its Go counterpart, in boxes of many shapes and arrays
// with several layouts, and changes only the boxes.
func TestSourcesMatchTheirCounterparts(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		device := set.Devices[0]
		all := samples()
		for _, s := range linearSamples(t) {
			// Each takes a second to compile: one type if threads run one by one, the other if they run as on a GPU.
			if testdevices.OnGPU(device) || testdevices.OnCPU(device) == (s.accesses[0].Element == "float32") {
				all = append(all, s)
			}
		}
		switch { // most take seconds to compile
		case testdevices.OnCPU(device):
			all = ofEachForm(t, all)
		case device.GoKernels:
			all = testdevices.Some(1, all)
		}
		for i, s := range all {
			t.Run(fmt.Sprintf("%d/%s", i, s.name()), func(t *testing.T) { checkSample(t, set, s) })
		}
	})
}

// ofEachForm returns one of the samples with the same kernels, for all forms, or all samples in long tests.
func ofEachForm(t *testing.T, all []sample) (some []sample) {
	of := map[string][]sample{}
	for _, s := range all {
		n := test.Must(newPlan(s.point, s.accesses))(t)
		key := fmt.Sprint(n.form().kernels(), n.totals() > 0)
		of[key] = append(of[key], s)
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		some = append(some, testdevices.Some(1, of[key])...)
	}
	return some
}

// Offsets and components that depend on data, or are outside the footprint, are detected without a GPU, for any
// data.
func TestCheckDetectsOffsetsThatAreNotConstant(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.Once(t)
	set := testdevices.Host(t, 1)
	type change struct{ old, new, says string }
	all := map[string]change{
		"constant":                  {"p.at(u, 1, 0, 0)", "p.at(u, 2 - 1, 0, 0)", ""},
		"a loop":                    {"p.at(u, 1, 0, 0) + p.at(u, -1, 0, 0)", "both(p)", ""},
		"outside the footprint":     {"p.at(u, 1, 0, 0)", "p.at(u, 2, 0, 0)", "at(u, ...)"},
		"by data, as a number":      {"p.at(u, 1, 0, 0)", "p.at(u, (int)p.at(old), 0, 0)", "at(u, ...)"},
		"by data that never occurs": {"p.at(u, 1, 0, 0)", "p.at(u, p.at(old) > 5 ? 2 : 1, 0, 0)", "at(u, ...)"},
		"by a parameter":            {"p.at(u, 1, 0, 0)", "p.at(u, (int)(4 * p.parameters.C2), 0, 0)", "at(u, ...)"},
		"by the position":           {"p.at(u, 1, 0, 0)", "p.at(u, p.i() % 5, 0, 0)", "at(u, ...)"},
		"a component by data":       {"p.at(old)", "p.at(old[(int)p.at(u) / 2])", "components must be constants"},
		"a write-only access":       {"p.at(u, 1, 0, 0)", "p.at(next, 1, 0, 0)", "wave.cu:7: at(next, ...) of an access that is only written"},
		"a read-only access":        {"p.set(next, v)", "p.set(u, v)", "set(u, ...) of an access that is only read"},
		"an unknown name":           {"p.at(u, 1, 0, 0)", "p.at(w, 1, 0, 0)", `access "w" must exist`},
	}
	for _, name := range testdevices.Some(4, slices.Sorted(maps.Keys(all))) {
		c := all[name]
		t.Run(name, func(t *testing.T) {
			s := waveSample()
			s.point.CUDA = `template <typename P> __device__ __forceinline__ double both(P &p) {
	double sum = 0;
	for (int d = 1; d >= -1; d -= 2) sum += p.at(u, d, 0, 0);
	return sum;
}
` + strings.Replace(s.point.CUDA, c.old, c.new, 1)
			n := test.Must(newPlan(s.point, s.accesses))(t)
			err := n.checkConstants(n.form())
			if errors.Is(err, ErrNoCompiler) {
				t.Skip("SKIPPED: ", err)
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if name == "by the position" {
				test.Is(t, Check(set.Compiler, set.Devices[0], s.point, s.accesses, CheckOptions{}), ErrFootprint)
			}
		})
	}
}

type forced struct {
	Force float64
	Row   int32
}

// Differences are found where only values of one sign, zeros or parameters that are not zero show them; a range leaves
// out values that never occur. One source is compared with several counterparts.
func TestCheckFindsDifferences(t *testing.T) {
	testdevices.InTurn(t, 0, 2)
	testdevices.Once(t)
	point := Point{
		Name: "forced", Dims: 2, Parameters: forced{}, Go: func(*Row) {}, CUDA: `
template <typename P> __device__ __forceinline__ void forced(P &p) {
	double v = p.at(u) > 0 ? p.at(u) : 2 * p.at(u);
	v += p.at(rho) + fabs(p.at(w));
	if (p.j() == 23) v += p.parameters.Force;
	if (p.j() == p.parameters.Row) v += 1;
	p.set(next, v / p.at(rho));
	const int around = p.at(cell, -1) + p.at(cell, 1) + p.at(cell, 0, -1) + p.at(cell, 0, 1);
	p.set(born, around == 3 || (around == 2 && p.at(cell)));
}`,
	}
	counterpart := func(change string) func(r *Row) {
		return func(r *Row) {
			u, w, rho := At[float64](r, "u", 0, 0, 0), At[float64](r, "w", 0, 0, 0), At[float64](r, "rho", 0, 0, 0)
			cells := func(dx, dy int) []uint8 { return At[uint8](r, "cell", dx, dy, 0) }
			next, born := At[float64](r, "next", 0, 0, 0), At[uint8](r, "born", 0, 0, 0)
			p := Parameters[forced](r)
			force, row, side := p.Force, 23, int(p.Row)
			switch change {
			case "sign":
				force = -force
			case "row":
				row = 24
			case "parameter":
				side++
			}
			for i := range next {
				v, size := u[i], math.Abs(w[i])
				if v <= 0 && change == "branch" {
					v = 12345
				} else if v <= 0 {
					v = float64(2 * v)
				}
				if change == "abs" {
					size = w[i]
				}
				v += rho[i] + size
				if r.J == row {
					v += force
				}
				if r.J == side {
					v++
				}
				next[i], born[i] = v/rho[i], 0
				around := cells(-1, 0)[i] + cells(1, 0)[i] + cells(0, -1)[i] + cells(0, 1)[i]
				alive := cells(0, 0)[i] > 0
				if change == "cell" {
					alive = cells(0, 0)[i] == 1
				}
				if around == 3 || around == 2 && alive {
					born[i] = 1
				}
			}
		}
	}
	accesses := []Access{{Name: "u", Element: "float64"}, {Name: "w", Element: "float64"}, {Name: "rho", Element: "float64"},
		{Name: "cell", Element: "uint8", Footprint: stencil.Star(2, 1)}, {Name: "next", Element: "float64", Write: true},
		{Name: "born", Element: "uint8", Write: true}}
	set := testdevices.Host(t, 1)
	n := test.Must(newPlan(point, accesses))(t)
	k := &checker{device: set.Devices[0], host: set.Devices[0], plan: n, form: n.form(), random: rand.New(rand.NewPCG(1, 2)), onCPU: map[string]*onCPU{}}
	defer func() { test.Check(t, k.close()) }()
	positive := map[string][2]float64{"u": {1, 2}, "w": {0, 1}, "rho": {1, 3}, "cell": {0, 1}}
	for _, c := range []struct {
		change  string
		options CheckOptions
		says    []string // nothing if there is no difference
	}{
		{"", CheckOptions{}, nil},
		{"branch", CheckOptions{}, []string{"next[0] at [", "at(u, 0, 0, 0) = -", "step() = ", "parameters = {Force:"}},
		{"branch", CheckOptions{Ranges: positive}, nil},
		{"abs", CheckOptions{}, []string{"at(w, 0, 0, 0) = -"}},
		{"abs", CheckOptions{Ranges: positive}, nil},
		{"sign", CheckOptions{}, []string{"next[0] at ["}},
		{"row", CheckOptions{}, []string{"next[0] at ["}},
		{"parameter", CheckOptions{}, nil},
		{"parameter", CheckOptions{Parameters: func(m Moment, p any) error {
			p.(*forced).Row = int32(m.Step) + 3
			return nil
		}}, []string{"next[0] at ["}},
		{"cell", CheckOptions{}, []string{"born[0] at [", "source 1, Go 0", "at(cell, -1, 0, 0) = "}},
		{"cell", CheckOptions{Ranges: positive}, nil},
	} {
		k.options, k.compared, n.point.Go = c.options, 0, counterpart(c.change)
		err := k.layout(k.layouts()[0])
		if errors.Is(err, ErrNoCompiler) {
			t.Skip("SKIPPED: ", err)
		}
		if errors.Is(err, ErrDiffer) != (c.says != nil) || c.says == nil && err != nil {
			t.Errorf("%q with %+v: got %v", c.change, c.options, err)
		}
		for _, says := range c.says {
			if err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%q: got %v, want %q", c.change, err, says)
			}
		}
	}
	for says, r := range map[string]map[string][2]float64{
		"access must exist": {"v": {}}, "in order": {"u": {2, 1}}, "of type uint8, got 300": {"cell": {0, 300}},
	} {
		test.Says(t, Check(set.Compiler, set.Devices[0], point, accesses, CheckOptions{Ranges: r}), says)
	}
}

// A process that has failed is closed without another error.
func TestFailedCheckReportsOneError(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	s := waveSample()
	s.point.CUDA = strings.Replace(s.point.CUDA, "p.at(u, 1, 0, 0)", "p.at(u, 2, 0, 0)", 1)
	set := testdevices.Host(t, 1)
	n := test.Must(newPlan(s.point, s.accesses))(t)
	k := &checker{device: set.Devices[0], host: set.Devices[0], plan: n, form: n.form(), random: rand.New(rand.NewPCG(1, 2)), onCPU: map[string]*onCPU{}}
	err := k.layout(k.layouts()[0])
	if errors.Is(err, ErrNoCompiler) {
		t.Skip("SKIPPED: ", err)
	}
	test.Is(t, err, ErrFootprint)
	if err := k.close(); err != nil {
		t.Errorf("close: got %v", err)
	}
}

// A panic of a Go counterpart is an error that names it.
func TestCheckOfAPanic(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	set := testdevices.Host(t, 1)
	s := waveSample()
	s.point.Go = func(r *Row) { At[float64](r, "u", 2, 0, 0) }
	err := Check(set.Compiler, set.Devices[0], s.point, s.accesses, CheckOptions{})
	if errors.Is(err, ErrNoCompiler) {
		t.Skip("SKIPPED: ", err)
	}
	if err == nil || !strings.Contains(err.Error(), `the Go counterpart of "wave" panicked`) || !strings.Contains(err.Error(), "must be in its footprint") {
		t.Errorf("got %v", err)
	}
}

// checkSample runs Check, in parallel with other tests unless the device is a real GPU.
func checkSample(t *testing.T, set *testdevices.Set, s sample) {
	t.Helper()
	if !testdevices.OnGPU(set.Devices[0]) {
		t.Parallel()
	}
	err := Check(set.Compiler, set.Devices[0], s.point, s.accesses, CheckOptions{})
	if errors.Is(err, ErrNoCompiler) {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%+v", err, s.point.CUDA, s.accesses)
	}
}

// TestFunctionsOfEqualBits checks the table of docs/reference/steps.md.
func TestFunctionsOfEqualBits(t *testing.T) {
	point := Point{
		Name: "functions", Dims: 2, CUDA: `
template <typename P> __device__ __forceinline__ void functions(P &p) {
	const double a = p.at(u) - 1, b = p.at(v) - 1, c = 8 * a;
	double s = a / b + sqrt(fabs(a)) + sqrtf((float)p.at(v)) + fma(a, b, c) + copysign(a, b);
	s += floor(c) + 3 * ceil(c) + 5 * trunc(c) + 7 * rint(c) + 11 * round(c);
	p.set(next, s + fmod(c, b) + remainder(c, b) + ldexp(a, (int)c) + fmin(a, b) + 2 * fmax(a, b));
}`,
		Go: func(r *Row) {
			u, v, next := At[float64](r, "u", 0, 0, 0), At[float64](r, "v", 0, 0, 0), At[float64](r, "next", 0, 0, 0)
			for i := range next {
				a, b := u[i]-1, v[i]-1
				c := float64(8 * a)
				s := float64(a/b) + math.Sqrt(math.Abs(a)) + float64(float32(math.Sqrt(float64(float32(v[i]))))) +
					math.FMA(a, b, c) + math.Copysign(a, b)
				s += math.Floor(c) + float64(3*math.Ceil(c)) + float64(5*math.Trunc(c)) +
					float64(7*math.RoundToEven(c)) + float64(11*math.Round(c))
				next[i] = s + math.Mod(c, b) + math.Remainder(c, b) + math.Ldexp(a, int(c)) + min(a, b) +
					float64(2*max(a, b))
			}
		},
	}
	accesses := []Access{{Name: "u", Element: "float64"}, {Name: "v", Element: "float64"},
		{Name: "next", Element: "float64", Write: true}}
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		err := Check(set.Compiler, set.Devices[0], point, accesses, CheckOptions{})
		if errors.Is(err, ErrNoCompiler) {
			t.Skip("SKIPPED: ", err)
		}
		test.Check(t, err)
	})
}

// TestCheckOfNaN compares functions whose result is not a number at some points: their norms are equal too.
func TestCheckOfNaN(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	point := Point{
		Name: "root", Dims: 2,
		CUDA: `template <typename P> __device__ __forceinline__ void root(P &p) { p.set(next, sqrt(p.at(u) - 1.5)); }`,
		Go: func(r *Row) {
			u, next := At[float64](r, "u", 0, 0, 0), At[float64](r, "next", 0, 0, 0)
			for i := range next {
				next[i] = math.Sqrt(u[i] - 1.5)
			}
		},
	}
	accesses := []Access{{Name: "u", Element: "float64"}, {Name: "next", Element: "float64", Write: true, Before: "u"}}
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		checkSample(t, set, sample{point: point, accesses: accesses})
	})
}
