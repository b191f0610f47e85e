package sweep

import (
	"os"
	"testing"

	"github.com/halox/halox/kernels"
)

// residentPlanOf is a plan of these stages in some phases, without the places of arrays.
func residentPlanOf(t *testing.T, phases int, stages ...sample) *residentPlan {
	t.Helper()
	var p residentPlan
	var plans []*plan
	for _, s := range stages {
		n := must(newPlan(s.point, s.accesses))(t)
		c, f := n.usualClasses(), n.form()
		one := residentStagePlan{plan: n, form: f, classes: c, strides: make([]strides, c.count()), arrays: make([][]kernels.Array, phases)}
		one.layers = int64(f.atOnce(false))
		p.stages, plans = append(p.stages, one), append(plans, n)
	}
	p.threads = threadsFor(plans)
	return &p
}

// Resident steps of every sample, alone and as one of two stages, compile for each generation of GPUs and
// keep their variables in registers.
func TestResidentStepsCompileWithoutSpills(t *testing.T) {
	c := findNVRTC(t)
	all := samples()
	for _, arch := range []string{"sm_80", "sm_90", "sm_100"} {
		for i, s := range all {
			plans := map[string]*residentPlan{"alone": residentPlanOf(t, 2, s)}
			for _, other := range all[i+1:] {
				if other.point.Dims == s.point.Dims {
					plans["with "+other.point.Name] = residentPlanOf(t, 3, s, other)
					break
				}
			}
			for name, p := range plans {
				program, _ := p.program(true)
				t.Run(arch+"/"+s.point.Name+"/"+name, func(t *testing.T) {
					t.Parallel()
					for _, u := range compileUsage(t, c, program, arch) {
						t.Logf("%s: %d registers, %d threads", u.Name, u.Registers, p.threads)
						if u.SpillStores+u.SpillLoads+u.StackFrame != 0 {
							t.Errorf("%s spills: %+v", u.Name, u)
						}
					}
				})
			}
		}
	}
}

// stages.cuh, with which editors read the sources, is the one that Go writes for the wave but for its size.
func TestStagesOfEditors(t *testing.T) {
	const file = "../cu/stages.cuh"
	p := residentPlanOf(t, 3, waveSample())
	want := p.stagesSource(0, true)
	if got := must(os.ReadFile(file))(t); string(got) != want {
		t.Errorf("%s is not what steps_source.go writes:\n%s", file, want)
		if os.Getenv("UPDATE") != "" {
			os.WriteFile(file, []byte(want), 0o644)
		}
	}
}
