package sweep

import (
	"fmt"
	"os"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// residentPlanOf returns a plan of these stages in some phases, without addresses of arrays.
func residentPlanOf(t *testing.T, phases int, measured bool, stages ...sample) *residentPlan {
	t.Helper()
	p := residentPlan{measured: measured}
	var plans []*plan
	for _, s := range stages {
		n := test.Must(newPlan(s.point, s.accesses))(t)
		c, f := n.usualClasses(), n.form()
		one := residentStagePlan{plan: n, form: f, classes: c, strides: make([]class, c.count()), arrays: make([][]kernels.Array, phases), single: f.scarce(), to: StageRank{Sweeper: &Sweeper{plan: n}, Interior: interiorOf(n)}.storing(0)}
		one.layers = int64(f.atOnce(one.single))
		if n.arrays < 8 { // faces have few targets
			one.to.room = targetRooms[0]
		}
		p.stages, plans = append(p.stages, one), append(plans, n)
	}
	p.threads = threadsFor(plans, measured)
	for i := range p.stages {
		p.stages[i].prefetch = prefetchFor(plans[i], p.threads, measured)
	}
	return &p
}

// Resident steps of every sample, as the only stage and as one of two, compile for each generation of GPUs without
// spills; those of linear stencils for the H200. Steps without norms need fewer registers: they are compiled only
// for the H200, in long tests.
func TestResidentStepsCompileWithoutSpills(t *testing.T) {
	c := findNVRTC(t)
	check := func(name, arch string, phases int, stages ...sample) {
		for _, measured := range []bool{false, true} {
			if !measured && (arch != "sm_90" || !testdevices.Long()) {
				continue
			}
			p := residentPlanOf(t, phases, measured, stages...)
			program, _ := p.program()
			kerneltest.WithoutSpills(t, c, fmt.Sprintf("%s/measured=%t", name, measured), program, arch)
		}
	}
	all := compiledSamples(t)
	for i, s := range all {
		for _, arch := range generationsOf(2, i) {
			check(s.point.Name, arch, 2, s)
			for _, other := range all[i+1:] {
				if other.point.Dims == s.point.Dims {
					check(s.point.Name+" and "+other.point.Name, arch, 3, s, other)
					break
				}
			}
		}
	}
	for i, s := range linearSamples(t) {
		if generationsOf(2, len(all)+i) != nil {
			check(s.name(), "sm_90", 2, s)
		}
	}
}

// stages.cuh, the example for editors, is the generated header of the wave, except for its size.
func TestStagesOfEditors(t *testing.T) {
	const file = "../cu/stages.cuh"
	p := residentPlanOf(t, 3, true, waveSample())
	want := p.stagesSource(0)
	if got := readSource(t, file); string(got) != want {
		t.Errorf("%s must be the output of resident_plan.go:\n%s", file, want)
		if os.Getenv("UPDATE") != "" {
			os.WriteFile(file, []byte(want), 0o644)
		}
	}
}

// The warps of resident steps measure all points of their tiles, which are divided evenly.
func TestWarpsMeasureTheirTiles(t *testing.T) {
	for _, s := range linearSamples(t) {
		n := test.Must(newPlan(s.point, s.accesses))(t)
		if n.point.Dims != 3 {
			continue
		}
		one := residentStagePlan{plan: n, form: n.form(), prefetch: 1}
		for size, fits := range map[int]bool{256: true, 1024: true, 4096: false} {
			b := domain.Box{Hi: domain.Vec{size, size, size}}
			a := kernels.Array{Layout: test.Must(domain.NewLayout(b, domain.UniformRadius(3, 2), n.accesses[0].Element.Size()))(t)}
			one.arrays, one.single = [][]kernels.Array{{a, a}}, false
			one.part = partOf([]kernels.Array{a}, b, n.group, n.group)
			one.layers = maxTileLayers
			one.tiles = one.tilesOf(256, one.layers)
			terms := one.warpTerms(132)
			if points := b.Points() / (132 * 256 / 32); terms < points || terms > 2*points || (terms <= maxWarpTerms) != fits {
				t.Errorf("%s, %v: got %d points per warp, %d points in total", s.name(), b, terms, points)
			}
		}
	}
}
