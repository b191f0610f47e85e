package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// The kernels of steps do not load through the read-only path, which may be stale for data that other blocks
// change; those of sweeps do. Steps wait for other GPUs by acquires and signal by releases, without fences for
// other GPUs, which would cost more.
func TestStepsAvoidTheReadOnlyPath(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	testdevices.Once(t)
	c := testdevices.CachingCompiler(t)
	for i, s := range append(samples(), linearSamples(t)...) {
		if !testdevices.Turn(i, 14, 14) {
			continue
		}
		n := test.Must(newPlan(s.point, s.accesses))(t)
		resident, _ := residentPlanOf(t, 2, false, s).program()
		steps := []kernels.Program{fusedProgram(t, s), resident}
		onlyRead := slices.ContainsFunc(s.accesses, func(a Access) bool { return !a.Write })
		for i, p := range append(steps, n.programOf("point.cu", n.source(n.usualClasses(), n.form()))) {
			t.Run(s.name()+"/"+p.File, func(t *testing.T) {
				t.Parallel()
				text := kerneltest.PTX(t, c, p)
				if readOnly := strings.Contains(text, "ld.global.nc"); readOnly != (onlyRead && i == len(steps)) {
					t.Errorf("loads through the read-only path: got %v", readOnly)
				}
				if i == len(steps) {
					return
				}
				for _, has := range []string{"ld.acquire.sys", "red.release.sys"} {
					if !strings.Contains(text, has) {
						t.Errorf("PTX must contain %s", has)
					}
				}
				for _, hasNot := range []string{"membar.sys", "fence.sc.sys", "fence.acq_rel.sys"} {
					if strings.Contains(text, hasNot) {
						t.Errorf("PTX must not contain %s", hasNot)
					}
				}
			})
		}
	}
}
