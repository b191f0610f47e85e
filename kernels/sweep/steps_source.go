package sweep

import (
	"fmt"
	"strings"

	"github.com/halox/halox/kernels"
)

// program returns what is compiled for resident steps, and the size of struct Steps.
func (p *residentPlan) program() (kernels.Program, int) {
	bytes := spanBytes + 8*(5+maxNeighbours*3+len(p.stages)*boundaryWords)
	for i := range p.stages {
		bytes += p.stages[i].bytes()
	}
	return p.stages[0].plan.programOf("point_steps.cu", p.accessesSource(), kernels.Header{Name: "stages.cuh", Text: p.stagesSource(bytes)}), bytes
}

// stageMacros are the macros of accesses.cuh that differ from stage to stage.
var stageMacros = []string{
	"STAGE", "TOTALS", "SWEEP_BYTES", "FRAME_BYTES", "FEW_ARRAYS", "READS", "WRITES", "NORMS", "REDUCTIONS", "OPERATIONS", "SLOT_PLACES",
	"STREAMS", "SEVERAL_LAYERS", "ONE_LAYER", "LAYERS_2", "LAYERS_4", "LAYERS_8", "LAYERED", "SCARCE", "TARGETS", "REFLECTS", "INNER_STORES",
}

// sharedHeaders are those that stages share: what has a guard is included before their namespaces.
var sharedHeaders = []string{"access.cuh", "slab.cuh", "totals.cuh"}

// stagesSource returns stages.cuh, see point_steps.cu, which holds struct Steps to its size unless that is 0.
func (p *residentPlan) stagesSource(bytes int) string {
	var b strings.Builder
	b.WriteString("// The stages of point_steps.cu, as steps_source.go of kernels/sweep writes them.\n#pragma once\n\n")
	for _, shared := range sharedHeaders {
		fmt.Fprintf(&b, "#include %q\n", shared)
	}
	b.WriteString("\n// clang-format off\n")
	fmt.Fprintf(&b, "#define STAGES(X)%s\n#define STEPS_THREADS %d\n", repeat(len(p.stages)), p.threads)
	if bytes > 0 {
		fmt.Fprintf(&b, "#define STEPS_BYTES %d\n", bytes)
	}
	if p.measured {
		b.WriteString("#define MEASURES\n")
	}
	fmt.Fprintf(&b, "enum { STAGE_COUNT = %d };\n", len(p.stages))
	for i := range p.stages {
		fmt.Fprintf(&b, "\n#define STAGE %d\nnamespace stage%d {\n#include \"swept.cuh\"\n}\n", i, i)
		for _, name := range stageMacros {
			fmt.Fprintf(&b, "#undef %s\n", name)
		}
	}
	return b.String()
}

// accessesSource returns accesses.cuh, of which each stage has a part.
func (p *residentPlan) accessesSource() string {
	var b strings.Builder
	for i := range p.stages {
		s := &p.stages[i]
		fmt.Fprintf(&b, "#if STAGE == %d\n%s\n#endif\n", i, s.plan.source(s.classes, s.form, stageOptions(s.form, Shape{Layers: int(s.layers), Single: s.single}, max(1, s.prefetch), len(s.arrays), s.to)))
	}
	return b.String()
}
