package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// findNVRTC returns NVRTC for a test that only compiles, or skips the test.
func findNVRTC(t *testing.T) *nvrtc.Compiler {
	t.Helper()
	testdevices.Once(t)
	return test.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
}

// linearSamples are the linear stencils of all kinds, those of radius 1 on the axes also with unequal spacings.
func linearSamples(t *testing.T) (all []sample) {
	for _, spacing := range [][]float64{{0.1, 0.1}, {0.1, 0.2}, {0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
		kinds := stencil.Kinds(len(spacing))
		if spacing[0] != spacing[1] {
			kinds = kinds[:1]
		}
		for _, kind := range kinds {
			s := test.Must(stencil.HeatOf(kind, spacing, 1, 1e-3))(t)
			for _, real := range []domain.Element{domain.Float32, domain.Float64} {
				p, accesses, err := Linear(s, real)
				test.Check(t, err)
				all = append(all, sample{p, accesses})
			}
		}
	}
	return all
}

// name identifies a sample.
func (s sample) name() string {
	if l := s.point.linear; l != nil {
		return fmt.Sprintf("dims=%d/points=%d/groups=%d/%s/sums=%s", l.Dims, l.Points(), len(l.Groups), s.accesses[0].Element, s.point.Sums)
	}
	return s.point.Name
}

// withFastSums returns the samples with fast sums.
func withFastSums(all []sample) (fast []sample) {
	for _, s := range all {
		s.point.Sums = sums.Fast
		fast = append(fast, s)
	}
	return fast
}

// Every sample and every linear stencil compiles for each generation of GPUs without spills; one of them with fast
// sums too, whose kernels have fewer registers.
func TestPointFunctionsCompileWithoutSpills(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	c := findNVRTC(t)
	check := func(s sample, archs ...string) {
		n := test.Must(newPlan(s.point, s.accesses))(t)
		for _, arch := range archs {
			kerneltest.WithoutSpills(t, c, s.name(), n.programOf("point.cu", n.source(n.usualClasses(), n.form())), arch)
		}
	}
	for i, s := range append(compiledSamples(t), linearSamples(t)...) {
		check(s, generationsOf(0, i)...)
	}
	for i, s := range withFastSums(linearSamples(t)) {
		if testdevices.Turn(i, 14, 14) {
			check(s, "sm_90")
		}
	}
}

// The fused stage of each of them also compiles without spills.
func TestFusedStagesCompileWithoutSpills(t *testing.T) {
	c := findNVRTC(t)
	for i, s := range append(compiledSamples(t), linearSamples(t)...) {
		for _, arch := range generationsOf(1, i) {
			kerneltest.WithoutSpills(t, c, s.name(), fusedProgram(t, s), arch)
		}
	}
}

// So do kernels that look up their frames.
func TestFedKernelsCompileWithoutSpills(t *testing.T) {
	c := findNVRTC(t)
	for i, s := range append(samples(), linearSamples(t)[0]) {
		if !testdevices.Turn(i, 9, 9) {
			continue
		}
		n := test.Must(newPlan(s.point, s.accesses))(t)
		n.table = &table{}
		plan := residentPlanOf(t, 2, true, s)
		plan.stages[0].plan = n
		resident, _ := plan.program()
		ranks := &RankSteps{phases: [][]StageRank{{{Sweeper: &Sweeper{plan: n, form: n.form()}}}}, classes: n.usualClasses()}
		swept := n.programOf("point.cu", n.source(n.usualClasses(), n.form()))
		for _, p := range []kernels.Program{swept, resident, ranks.program(1)} {
			kerneltest.WithoutSpills(t, c, s.name()+"/"+p.File, p, "sm_90")
		}
	}
}

// So do all kernels of a stage that only reduces, and writes nothing.
func TestStagesThatOnlyReduceCompile(t *testing.T) {
	c, read := findNVRTC(t), Access{Name: "u", Element: "float64", Footprint: stencil.Footprint{{0, 0, -1}, {0, 0, 1}}}
	s := sample{Point{
		Name: "look", Dims: 3, Reductions: []Reduction{{"mass", Sum}, {"least", Min}}, Go: func(*Row) {},
		CUDA: `template <typename P> __device__ __forceinline__ void look(P &p) {
	p.reduce(mass, p.at(u, 0, 0, -1));
	p.reduce(least, p.at(u, 0, 0, 1));
}`,
	}, []Access{read}}
	n := test.Must(newPlan(s.point, s.accesses))(t)
	swept := n.programOf("point.cu", n.source(n.usualClasses(), n.form()))
	resident, _ := residentPlanOf(t, 2, true, s, waveSample(), s).program()
	for _, p := range []kernels.Program{swept, fusedProgram(t, s), resident} {
		kerneltest.WithoutSpills(t, c, s.name(), p, "sm_90")
	}
}

// fusedProgram is the program of a fused stage of a sample.
func fusedProgram(t *testing.T, s sample) kernels.Program {
	t.Helper()
	n := test.Must(newPlan(s.point, s.accesses))(t)
	f, classes := n.form(), n.usualClasses()
	shape := f.shapes[0]
	r := StageRank{Sweeper: &Sweeper{plan: n, form: f, shape: shape}, Interior: interiorOf(n)}
	k := stagePlan{
		launchPlan: launchPlan{classes: classes, strides: make([]class, classes.count()), layers: shape.Layers},
		options:    stageOptions(f, shape, 1, 1, r.storing(6)), room: 6, single: shape.Single,
	}
	return r.program(&k)
}

// interiorOf returns an interior larger than the core of a rank without one, unless slabs are kept, see
// absorbSlabs.
func interiorOf(n *plan) (b domain.Box) {
	if n.point.linear == nil {
		b.Hi = domain.Vec{1, 1, 1}
	}
	return b
}

// generationsOf returns the generations of GPUs for which one of four kinds of programs is compiled for the i-th
// sample: all in long tests. Otherwise one of the kinds is compiled for every eighth sample, for one generation,
// selected by the seed.
func generationsOf(kind, i int) []string {
	if !testdevices.Turn(kind+i+i/4, 32, 32) {
		return nil
	}
	return testdevices.Generations(i / 4)
}

// readSource reads a source, or skips the test if the sources are missing, as for test programs on other machines.
func readSource(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("SKIPPED: the CUDA sources are missing: ", err)
	}
	return test.Must(text, err)(t)
}

// accesses.cuh, the example for editors, is the generated header of the wave.
func TestAccessesOfEditors(t *testing.T) {
	const file = "../cu/accesses.cuh"
	s := waveSample()
	n := test.Must(newPlan(s.point, s.accesses))(t)
	want := n.source(n.usualClasses(), n.form(), stageOptions(n.form(), n.form().shapes[0], 1, 3, storing{room: 6}))
	if got := readSource(t, file); string(got) != want {
		t.Errorf("%s must be the output of source.go:\n%s", file, want)
		if os.Getenv("UPDATE") != "" {
			os.WriteFile(file, []byte(want), 0o644)
		}
	}
}
