package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// stepPrograms are what is compiled of a sample: for fused stages, and for resident steps.
func stepPrograms(t *testing.T, s sample) []kernels.Program {
	t.Helper()
	n := must(newPlan(s.point, s.accesses))(t)
	f, classes := n.form(), n.usualClasses()
	k := stagePlan{launchPlan: launchPlan{classes: classes, strides: make([]strides, classes.count()), layers: f.shapes[0].Layers}, options: stageOptions(f, f.shapes[0], 1, 1, storing{room: 6}), room: 6, single: f.shapes[0].Single}
	r := StageRank{Sweeper: &Sweeper{plan: n, form: f, shape: f.shapes[0]}}
	resident, _ := residentPlanOf(t, 2, false, s).program()
	return []kernels.Program{r.program(&k), resident}
}

// The kernels of steps read nothing by the read-only path, which may keep what others have changed since;
// those of sweeps do. Steps wait for other GPUs by acquires and signal by releases, and by no fence for other
// GPUs, which would cost more.
func TestStepsReadWhatOthersWrite(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	testdevices.Once(t)
	c := testdevices.CachingCompiler(t)
	for i, s := range append(samples(), linearSamples(t)...) {
		if !testdevices.Turn(i, 14, 14) {
			continue
		}
		n := must(newPlan(s.point, s.accesses))(t)
		steps := stepPrograms(t, s)
		onlyRead := slices.ContainsFunc(s.accesses, func(a Access) bool { return !a.Write })
		for i, p := range append(steps, n.programOf("point.cu", n.source(n.usualClasses(), n.form()))) {
			t.Run(s.name()+"/"+p.File, func(t *testing.T) {
				t.Parallel()
				text := kerneltest.PTX(t, c, p)
				if readOnly := strings.Contains(text, "ld.global.nc"); readOnly != (onlyRead && i == len(steps)) {
					t.Errorf("loads by the read-only path: %v", readOnly)
				}
				if i == len(steps) {
					return
				}
				for _, has := range []string{"ld.acquire.sys", "red.release.sys"} {
					if !strings.Contains(text, has) {
						t.Errorf("no %s", has)
					}
				}
				for _, hasNot := range []string{"membar.sys", "fence.sc.sys", "fence.acq_rel.sys"} {
					if strings.Contains(text, hasNot) {
						t.Errorf("%s in it", hasNot)
					}
				}
			})
		}
	}
}
