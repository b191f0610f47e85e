package solvers

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// Tests run the kernel of scheme ranks on the CPU.
func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "../kernels/cu/rank_steps.cu")) }
