package temporal

import (
	"os"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "../cu/pass*.cu")) }
