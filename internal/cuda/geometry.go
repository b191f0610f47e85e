package cuda

import "fmt"

// What all devices that CUDA still supports can launch.
const (
	MaxGridX        = 1<<31 - 1 // blocks along x
	MaxGridYZ       = 1<<16 - 1 // blocks along y, and along z
	MaxBlockThreads = 1024      // threads of a block, and along x or y
	MaxBlockZ       = 64        // threads along z
	MaxArgBytes     = 4096      // bytes of kernel parameters
)

// CheckGeometry refuses what no device can launch, with the numbers and the
// limit in the error. [NewLaunch] asks it.
func CheckGeometry(grid, block Dim3, argBytes int) error {
	switch {
	case grid.Count() == 0 || block.Count() == 0:
		return fmt.Errorf("launch of an empty grid: %v blocks of %v threads", grid, block)
	case grid.X > MaxGridX || grid.Y > MaxGridYZ || grid.Z > MaxGridYZ:
		return fmt.Errorf("launch of a grid of %v blocks: at most %dx%dx%d are possible",
			grid, MaxGridX, MaxGridYZ, MaxGridYZ)
	case block.X > MaxBlockThreads || block.Y > MaxBlockThreads || block.Z > MaxBlockZ:
		return fmt.Errorf("launch of blocks of %v threads: at most %dx%dx%d are possible",
			block, MaxBlockThreads, MaxBlockThreads, MaxBlockZ)
	case block.Count() > MaxBlockThreads:
		return fmt.Errorf("launch of blocks of %v = %d threads: at most %d are possible",
			block, block.Count(), MaxBlockThreads)
	case argBytes > MaxArgBytes:
		return fmt.Errorf("launch with an argument of %d bytes: at most %d are possible", argBytes, MaxArgBytes)
	}
	return nil
}
