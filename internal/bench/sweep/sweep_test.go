package sweep

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// What is compared with the host's is found to be right, and wrong where a bit is.
func TestSweepsAreCompared(t *testing.T) {
	r := &run{device: testdevices.Host(t, 1).Devices[0], compiler: kernels.CompilerFromEnv()}
	for _, s := range shapes() {
		c := sweepCase{shape: s, real: domain.Float32, points: 5}
		var open streams.Resources
		defer open.Close()
		swept := test.Must(newSwept(t.Context(), r.compiler, r.device, c, &open))(t)
		if err := r.compare(t.Context(), c, swept); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		at := swept.arrays[0].Layout.Offset([3]int{2, 3, 0}) * 4
		swept.arrays[0].Data.Memory.Bytes()[at+2] ^= 1 << 6
		heat := test.Must(s.stencil())(t)
		want := fmt.Sprintf("differs from the host's in the row at y %d, z 0", 3-heat.AxisRadius(1))
		test.Says(t, r.compare(t.Context(), c, swept), want)
	}
}
