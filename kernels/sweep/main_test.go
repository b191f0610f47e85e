package sweep

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// Tests run every kernel of point functions on the CPU.
func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "../cu/point*.cu")) }
