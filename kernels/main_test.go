package kernels_test

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// Tests run every kernel on the CPU; those of point functions do so in their own package.
func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "cu/*.cu", "-cu/point*.cu")) }
