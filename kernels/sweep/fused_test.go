package sweep

import (
	"testing"

	"github.com/halox/halox/kernels/internal/kerneltest"
)

// The fused stage of every sample and of every linear stencil compiles for each generation of GPUs and keeps its variables in
// registers.
func TestFusedStagesCompileWithoutSpills(t *testing.T) {
	c := findNVRTC(t)
	for i, s := range append(compiledSamples(), linearSamples(t)...) {
		for _, arch := range generationsOf(1, i) {
			n, err := newPlan(s.point, s.accesses)
			if err != nil {
				t.Fatal(err)
			}
			f := n.form()
			classes := n.usualClasses()
			k := stagePlan{launchPlan: launchPlan{classes: classes, strides: make([]strides, classes.count()), layers: f.shapes[0].Layers}, options: stageOptions(f, f.shapes[0], 1, 1, storing{room: 6, inner: n.point.linear == nil}), room: 6, single: f.shapes[0].Single}
			r := StageRank{Sweeper: &Sweeper{plan: n, form: f, shape: f.shapes[0]}}
			kerneltest.WithoutSpills(t, c, s.name(), r.program(&k), arch)
		}
	}
}
