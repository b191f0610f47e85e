package step_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
)

// tryTiles makes eight steps in launches of any number, from an odd step on, from an even one, and across the step 2^32,
// and compares them with plain loops.
func tryTiles(t *testing.T, set *testdevices.Set, c gridCase) {
	type series struct {
		first    int64
		launches []int64
	}
	for _, one := range testdevices.Some(3, []series{
		{0, []int64{1, 2, 1, 1, 3}}, {0, []int64{5, 2, 1}}, {5, []int64{3, 5}}, {1<<32 - 5, []int64{3, 5}}, {1<<32 - 4, []int64{2, 6}},
	}) {
		t.Run(fmt.Sprintf("%v/launches=%v/first=%d", c, one.launches, one.first), func(t *testing.T) {
			c.run(t, set, 0, one.first, one.launches, 0)
		})
	}
}

// Tiles give the bits of plain loops, in boxes that take one tile or many, none of equal sizes, on one
// device and several, in launches of any number of steps.
func TestTiles(t *testing.T) {
	eachGPU(t, 3, func(t *testing.T, set *testdevices.Set) {
		onCPU := testdevices.OnCPU(set.Devices[0])
		for i, size := range []domain.Vec{{5, 7, 1}, {301, 97, 1}, {1030, 203, 1}, {6, 5, 7}, {33, 20, 2}, {33, 47, 29}, {70, 101, 64}, {100, 90, 131}, {40, 3000, 1}, {7, 1, 5}, {1, 6, 5}, {9, 8, 1}} {
			slow := size[2]
			if slow == 1 {
				slow = size[1]
			}
			for devices := 1; devices <= min(slow, len(set.Devices)); devices++ {
				for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
					if onCPU && (size.Product() > 1<<16 || devices == 2 || (devices > 1) != (real == kernels.Float64)) {
						continue // a few cases, which compile tiles of all kinds
					}
					if onCPU && !testdevices.Turn(i+2*(devices/2), 4, 4) {
						continue // each size on one device, on three or on none
					}
					tryTiles(t, set, rowCase(size, devices, real))
				}
			}
		}
	})
}

// So they do where registers hold a part of the tiles, see TestTilings.
func TestTilesInRegisters(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	eachGPU(t, 2, func(t *testing.T, set *testdevices.Set) {
		try := func(c gridCase) {
			c.inRegisters = true
			tryTiles(t, set, c)
		}
		if testdevices.OnCPU(set.Devices[0]) { // which have less shared memory
			for _, c := range testdevices.Some(1, []gridCase{
				rowCase(domain.Vec{65, 67, 26}, 2, kernels.Float64), rowCase(domain.Vec{515, 301, 1}, 2, kernels.Float32),
			}) {
				try(c)
			}
			return
		}
		for devices := 1; devices <= min(2, len(set.Devices)); devices++ {
			for _, size := range []domain.Vec{{127, 253, 123 * devices}, {1030, 4099 * devices, 1}} {
				try(rowCase(size, devices, kernels.Float64))
			}
			for _, size := range []domain.Vec{{253, 255, 121 * devices}, {2050, 4101 * devices, 1}} {
				try(rowCase(size, devices, kernels.Float32))
			}
		}
	})
}
