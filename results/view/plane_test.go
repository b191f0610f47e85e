package view

import (
	"errors"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
)

// readIndices fills a box with numbers made of the points' coordinates.
func readIndices(dst []float64, box domain.Box) error {
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			for x := box.Lo[0]; x < box.Hi[0]; x++ {
				dst[0] = number(x, y, z)
				dst = dst[1:]
			}
		}
	}
	return nil
}

var weight = [3]float64{1, 100, 10000}

func number(x, y, z int) float64 {
	return weight[0]*float64(x) + weight[1]*float64(y) + weight[2]*float64(z)
}

// A linear field has the mean of a block at the middle of the block: so each
// cell must hold the field of where the picture puts it.
func TestMosaicOfALinearField(t *testing.T) {
	for _, tc := range []struct {
		name         string
		size         []int
		axis, index  int
		side, nx, ny int
	}{
		{"as it is", []int{7, 5}, 2, 0, 7, 7, 5},
		{"halves", []int{12, 6}, 2, 0, 6, 6, 6},
		{"both axes", []int{12, 8}, 2, 0, 4, 4, 4},
		{"across x", []int{5, 8, 12}, 0, 3, 4, 4, 4},
		{"across y", []int{8, 5, 12}, 1, 3, 4, 4, 4},
		{"across z", []int{8, 12, 5}, 2, 3, 4, 4, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			grid := test.Must(domain.NewGrid(tc.size, nil))(t)
			p := newPlane(grid, tc.axis, tc.index)
			m, err := readMosaic(p, tc.side, tc.side, readIndices)
			if err != nil || m.across.cells != tc.nx || m.up.cells != tc.ny {
				t.Fatalf("%d by %d cells, %v", m.across.cells, m.up.cells, err)
			}
			x0, dx := m.across.axis(0, 1)
			y0, dy := m.up.axis(0, 1)
			for i, mean := range m.means {
				x, y := x0+dx*float64(i%tc.nx), y0+dy*float64(i/tc.nx)
				want := x*weight[p.across] + y*weight[p.up] + float64(tc.index)*weight[tc.axis]
				if math.Abs(mean-want) > 1e-9*want {
					t.Errorf("cell %d holds %v, not %v", i, mean, want)
				}
			}
		})
	}
}

// Whatever the sizes, every point lies in the block of its cell, and the cells
// reach as far as the points.
func TestTiling(t *testing.T) {
	for points := 1; points <= 40; points++ {
		for most := 1; most <= 45; most++ {
			tiles := newTiling(points, most)
			for p := range points {
				if lo, hi := tiles.block(tiles.cell(p)); p < lo || p >= hi {
					t.Fatalf("%+v: point %d is in cell %d, [%d, %d)", tiles, p, tiles.cell(p), lo, hi)
				}
			}
			origin, step := tiles.axis(3, 0.5)
			end := origin + step*(float64(tiles.cells)-0.5)
			if want := 3 + 0.5*(float64(points)-0.5); math.Abs(origin-step/2-2.75) > 1e-12 || math.Abs(end-want) > 1e-12 {
				t.Fatalf("%+v reaches from %v to %v", tiles, origin-step/2, end)
			}
		}
	}
}

// A plane of many points is read in parts.
func TestMosaicIsReadInParts(t *testing.T) {
	grid := test.Must(domain.NewGrid([]int{1 << 12, 1 << 11}, nil))(t)
	var read int64
	m, err := readMosaic(newPlane(grid, 2, 0), 8, 8, func(dst []float64, box domain.Box) error {
		if len(dst) > chunkPoints || int64(len(dst)) != box.Points() {
			t.Errorf("%d points at once for %v", len(dst), box)
		}
		read += box.Points()
		for i := range dst {
			dst[i] = 1
		}
		return nil
	})
	if err != nil || read != grid.Points() || read <= chunkPoints {
		t.Errorf("%d points read: %v", read, err)
	}
	for i, mean := range m.means {
		if mean != 1 {
			t.Errorf("cell %d of ones holds %v", i, mean)
		}
	}
	broken := errors.New("broken")
	if _, err := readMosaic(newPlane(grid, 2, 0), 8, 8, func([]float64, domain.Box) error { return broken }); err != broken {
		t.Errorf("got %v", err)
	}
}
