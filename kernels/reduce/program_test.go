package reduce

import (
	"testing"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/sums"
)

// programs are all that this package may compile.
func programs() []kernels.Program {
	var all []kernels.Program
	for _, mode := range []sums.Mode{sums.Reproducible, sums.Fast} {
		all = append(all, normsProgram(kernels.Float32, mode), normsProgram(kernels.Float64, mode))
		for place := range scalar.All {
			all = append(all, reduceProgram(place, mode))
		}
	}
	return all
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs()...) }

func TestEveryArgumentIsMirrored(t *testing.T) { kerneltest.MirrorArguments(t, programs()...) }

func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	kerneltest.CompileWithoutSpills(t, programs()...)
}
