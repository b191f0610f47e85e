package step_test

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// Tests run every kernel of these sources on the CPU.
func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "../cu/tiles.cu", "../cu/wide_tiles.cu")) }
