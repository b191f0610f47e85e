package halo_test

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// Four devices, of which 0 and 2, and 1 and 3, are near each other, share a chain
// of four subdomains.
func ExampleMapDevices() {
	devices, err := streams.HostPlatform(4).Open()
	if err != nil {
		panic(err)
	}
	defer streams.CloseAll(devices)
	grid, _ := domain.NewGrid([]int{64, 64}, [3]bool{})
	cut, _ := domain.Decompose(grid, domain.Vec{1, 4, 1})
	cost := func(from, to *streams.Device, bytes int64) float64 {
		if from.ID%2 == to.ID%2 {
			return float64(bytes) / 400
		}
		return float64(bytes) / 25
	}
	u := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}
	place, why, err := halo.MapDevices(cut, devices, cost, u)
	if err != nil {
		panic(err)
	}
	fmt.Println(place.Devices)
	fmt.Println(why)
	// Output:
	// [host 0 host 2 host 1 host 3]
	// cost of the busiest device: as given 40.96, greedy 21.76, exact 21.76: subdomains lie on devices [0 2 1 3] of those given
}
