package reduce_test

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// Tests run every kernel of these sources on the CPU.
func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "../cu/norms.cu", "../cu/reduce.cu")) }
