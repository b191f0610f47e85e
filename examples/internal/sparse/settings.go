package sparse

import (
	"flag"
	"fmt"
	"math"

	"github.com/halox/halox/examples/internal/compare"
)

// Settings are what the flags of the matrix say.
type Settings struct {
	Size    int64 // rows of a block
	Side    int   // blocks along each axis; 0: the fewest that go evenly onto the devices
	Density float64
	Rates   Rates
}

// Bounds: rows are numbered by int32, and blocks of a device by MAX_BLOCKS of sparse.cuh.
const (
	maxSize   = math.MaxInt32
	maxSide   = 16
	maxBlocks = 64
)

// Flags adds the flags, whose defaults are the sizes of Kuster (2017).
func (s *Settings) Flags(f *flag.FlagSet) {
	f.Int64Var(&s.Size, "size", 10816, "rows and columns of a block of the matrix")
	f.IntVar(&s.Side, "side", 0, "blocks along each axis; 0 for the fewest that go evenly onto the devices")
	s.Rates.flags(f)
	f.Float64Var(&s.Density, "density", 0.003, "share of the elements that are stored")
}

// Check returns an error unless there is such a matrix.
func (s *Settings) Check() error {
	if !(s.Density > 0 && s.Density <= 1) {
		return fmt.Errorf("--density %v: want more than 0, and up to 1", s.Density)
	}
	if err := s.Rates.check(); err != nil {
		return err
	}
	if err := compare.Within("size", s.Size, 1, maxSize); err != nil {
		return err
	}
	return compare.Within("side", int64(s.Side), 0, maxSide)
}

// Scales reports whether a matrix can be cut for so many devices: if nobody says how many blocks there are, into one on
// each.
func (s *Settings) Scales(devices int) bool {
	if s.Side > 0 {
		return s.Side*s.Side%devices == 0
	}
	side := 1
	for side*side < devices {
		side++
	}
	return side*side == devices
}

// Matrix returns the matrix for so many devices.
func (s *Settings) Matrix(devices int, data compare.Data, stochastic bool) (*Matrix, error) {
	side := s.Side
	if side == 0 {
		for side = 1; side*side%devices != 0; side++ {
		}
	}
	if side*side%devices != 0 {
		return nil, fmt.Errorf("--side %d: %d blocks do not go evenly onto %d devices", side, side*side, devices)
	}
	if side*side/devices > maxBlocks {
		return nil, fmt.Errorf("--side %d: %d blocks on each of %d devices, which hold %d", side, side*side/devices, devices, maxBlocks)
	}
	perRow := max(1, int64(math.Round(s.Density*float64(s.Size))))
	return &Matrix{N: s.Size, PerRow: perRow, Side: side, Data: data, Stochastic: stochastic, Rates: s.Rates}, nil
}
