package solvers

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
)

// Tests run the kernel of scheme ranks on the CPU. Processes started by a test run its program.
func TestMain(m *testing.M) {
	if testmpi.IsProgram() {
		testmpi.Main(m, programs())
	}
	os.Exit(testdevices.Main(m, "../kernels/cu/rank_steps.cu"))
}
