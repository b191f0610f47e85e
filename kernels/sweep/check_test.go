package sweep

import (
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/internal/testdevices"
)

// The CUDA source of every sample gives the bits of its twin, in boxes of many shapes, arrays that
// lie in memory in several ways, and nothing but the boxes changes.
func TestSourcesGiveTheBitsOfTheirTwins(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		device := set.Devices[0]
		all := samples()
		for _, s := range linearSamples(t) {
			// Each takes seconds to compile: one type where threads run in turn, one where they run as on a GPU.
			if testdevices.OnGPU(device) || testdevices.OnCPU(device) == (s.accesses[0].Element == "float32") {
				all = append(all, s)
			}
		}
		for i, s := range testdevices.Few(4, all) {
			t.Run(fmt.Sprintf("%d/%s", i, s.name()), func(t *testing.T) { checkSample(t, set, s) })
		}
	})
}

// checkSample runs Check, beside other tests unless the device is a real GPU.
func checkSample(t *testing.T, set *testdevices.Set, s sample) {
	t.Helper()
	if !testdevices.OnGPU(set.Devices[0]) {
		t.Parallel()
	}
	err := Check(set.Compiler, set.Devices[0], s.point, s.accesses)
	if errors.Is(err, ErrNoCompiler) {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%+v", err, s.point.CUDA, s.accesses)
	}
}
