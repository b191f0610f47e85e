//go:build linux && cgo

package temporal

import (
	"testing"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// pointPrograms are the kernels of all samples.
func pointPrograms(t *testing.T) (all []kernels.Program) {
	_, d := kerneltest.FakeGPU(t)
	real := d.Shared
	for _, s := range sampleFunctions() {
		d.Shared = 227 << 10
		for _, one := range s.passesOn(t, testdevices.Compiler(t), d).gpu.candidates {
			all = append(all, one.program)
		}
		d.Shared = real
	}
	return all
}

// A pass keeps the variables of usual point functions in registers, on each generation of GPUs.
func TestPassesOfPointFunctionsCompileWithoutSpills(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testdevices.Once(t)
	c := kerneltest.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
	for i, p := range pointPrograms(t) {
		for k, target := range generations {
			if testdevices.Turn(i+32*k, 96, 96) { // some for each generation
				kerneltest.WithoutSpills(t, c, p.String(), p, target)
			}
		}
	}
}
