package pack

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// programs returns all programs that this package may compile.
func programs() []kernels.Program {
	return []kernels.Program{
		moveProgram(), directExchangeProgram(), treeProgram(), blocksProgram(), unitsProgram(),
		reflectProgram(domain.Float32), reflectProgram(domain.Float64),
	}
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs()...) }

func TestEveryArgumentIsMirrored(t *testing.T) { kerneltest.MirrorArguments(t, programs()...) }

func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	kerneltest.CompileWithoutSpills(t, programs()...)
}

func TestWaitsAcquireAndSignalsRelease(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	kerneltest.AcquireAndRelease(t, directExchangeProgram())
}
