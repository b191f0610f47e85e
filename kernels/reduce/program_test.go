package reduce

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/sums"
)

// programs returns all programs that this package may compile.
func programs() []kernels.Program {
	var all []kernels.Program
	for _, mode := range []sums.Mode{sums.Reproducible, sums.Fast} {
		all = append(all, normsProgram(domain.Float32, mode), normsProgram(domain.Float64, mode))
		for _, number := range scalar.All {
			all = append(all, reduceProgram(number, mode))
		}
	}
	return all
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs()...) }

func TestEveryArgumentIsMirrored(t *testing.T) { kerneltest.MirrorArguments(t, programs()...) }

func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	kerneltest.CompileWithoutSpills(t, programs()...)
}
