package ranks_test

import (
	"testing"

	"github.com/halox/halox/halo/ranks"
)

// The device of a rank by a multiplication is that by a division: for the first and the last rank of each device, with
// any number of ranks of a device.
func TestDeviceOfRank(t *testing.T) {
	for n := uint64(1); n <= 1<<14; n++ {
		r := ranks.Reciprocal(int(n))
		for device := range uint64(ranks.MaxDevices) {
			for _, rank := range []uint64{device * n, device*n + n - 1} {
				if got := rank * r >> 32; got != device {
					t.Fatalf("rank %d of %d on each device: device %d, want %d", rank, n, got, device)
				}
			}
		}
	}
}
