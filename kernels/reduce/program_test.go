package reduce

import (
	"testing"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/internal/scalar"
)

// programs are all that this package may compile.
func programs() []kernels.Program {
	all := []kernels.Program{normsProgram(kernels.Float32), normsProgram(kernels.Float64)}
	for place := range scalar.All {
		all = append(all, reduceProgram(place))
	}
	return all
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs()...) }

func TestEveryArgumentIsMirrored(t *testing.T) { kerneltest.MirrorArguments(t, programs()...) }

func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	kerneltest.CompileWithoutSpills(t, programs()...)
}
