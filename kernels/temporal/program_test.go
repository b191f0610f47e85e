package temporal

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/stencil"
)

// programs are all kernels for stars that reach one point, and those for other stencils that hold the most.
func programs(t *testing.T) (all []kernels.Program) {
	seen := map[string]bool{}
	for _, s := range stencils(t) {
		for _, real := range []kernels.Real{kernels.Float32, kernels.Float64} {
			l := kerneltest.Must(domain.NewLayout(domain.Box{Hi: domain.Vec{1, 1, 1}}, s.Radius(), real.Size()))(t)
			for _, one := range shapesOf(s, real, l, 160<<10) {
				if kind := kindOf(s, one); !seen[kind+string(real)] {
					seen[kind+string(real)] = true
					all = append(all, one.program)
				}
			}
		}
	}
	return all
}

// kindOf names what programs are alike in: of pass.cu the stencil, of others all.
func kindOf(s stencil.Stencil, one shape) string {
	if one.name == "pass" {
		return fmt.Sprint(s.Footprint())
	}
	return one.String()
}

func TestEveryArgumentIsMirrored(t *testing.T) { kerneltest.MirrorArguments(t, programs(t)...) }

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs(t)...) }

// No level leaves the registers that it was given.
func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	kerneltest.CompileWithoutSpills(t, testdevices.Spread(16, programs(t))...)
}
