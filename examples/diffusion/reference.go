package main

import (
	"math"

	"github.com/halox/halox/examples/internal/compare"
)

var nan = math.NaN()

// grid is values on levels of a periodic plane, x fastest, then y, then levels.
type grid struct {
	nx, ny, nz int
	values     []float64
}

func newGrid(nx, ny, nz int) grid { return grid{nx, ny, nz, make([]float64, nx*ny*nz)} }

func (g grid) row(z, y int) []float64 { return g.values[(z*g.ny+y)*g.nx:][:g.nx] }

// at is the value at a point of the periodic plane of a level.
func (g grid) at(x, y, z int) float64 { return g.row(z, (y+g.ny)%g.ny)[(x+g.nx)%g.nx] }

// filled returns a grid with the values of f.
func filled(nx, ny, nz int, f func(x, y, z int) float64) grid {
	g := newGrid(nx, ny, nz)
	compare.Parallel(int64(len(g.values)), func(lo, hi int64) {
		for i := int(lo); i < int(hi); i++ {
			g.values[i] = f(i%nx, i/nx%ny, i/nx/ny)
		}
	})
	return g
}

// start is a grid with waves on each level, and a hash of the point: rough enough for the limiter to act.
func start(nx, ny, nz int) grid {
	return filled(nx, ny, nz, func(x, y, z int) float64 {
		noise := uint64((z*ny+y)*nx+x+1) * 0x9e3779b97f4a7c15
		noise = (noise ^ noise>>29) * 0xbf58476d1ce4e5b9
		wave := math.Sin(2*math.Pi*float64(x)/float64(nx)) * math.Cos(2*math.Pi*float64(y)/float64(ny))
		return 10 + float64(z) + wave + float64(noise>>40)/(1<<24)
	})
}

// reference makes steps of a grid on the host, stage after stage over the whole plane, by no code of the two methods.
func reference(u grid, steps int) grid {
	for range steps {
		lap := filled(u.nx, u.ny, u.nz, func(x, y, z int) float64 {
			return 4*u.at(x, y, z) - (u.at(x-1, y, z) + u.at(x+1, y, z) + u.at(x, y-1, z) + u.at(x, y+1, z))
		})
		along := func(dx, dy int) grid {
			return filled(u.nx, u.ny, u.nz, func(x, y, z int) float64 {
				f := lap.at(x+dx, y+dy, z) - lap.at(x, y, z)
				slope := u.at(x+dx, y+dy, z) - u.at(x, y, z)
				if float64(f*slope) > 0 {
					f = 0
				}
				return f
			})
		}
		flx, fly, old := along(1, 0), along(0, 1), u
		u = filled(u.nx, u.ny, u.nz, func(x, y, z int) float64 {
			gain := flx.at(x, y, z) - flx.at(x-1, y, z) + fly.at(x, y, z) - fly.at(x, y-1, z)
			return old.at(x, y, z) - float64(0.025*gain)
		})
	}
	return u
}
