package pack_test

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// Tests run every kernel of these sources on the CPU.
func TestMain(m *testing.M) {
	os.Exit(testdevices.Main(m, "../cu/blocks.cu", "../cu/exchange.cu", "../cu/move.cu", "../cu/reflect.cu", "../cu/tree.cu", "../cu/units.cu"))
}
