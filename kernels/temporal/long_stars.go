package temporal

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// longStar reports whether a stencil is a star in three dimensions that reaches two points along each axis.
func longStar(s stencil.Stencil) bool {
	return s.Dims == 3 && s.Footprint().Axes() == 1 && s.AxisRadius(0) == 2 && s.AxisRadius(1) == 2 && s.AxisRadius(2) == 2
}

// longStars is how pass_stars.cu is compiled.
type longStars struct {
	depth, rows, team, lead int
	on                      targets
}

// longStarsTried are those that registers have room for. More rows a warp, and three steps in float32, were slower on an H100.
var longStarsTried = map[kernels.Real][]longStars{
	kernels.Float64: {{2, 4, 12, 2, hopperOnly}, {2, 4, 8, 2, upToHopper}, {2, 3, 8, 2, everywhere}},
	kernels.Float32: {{2, 2, 16, 2, hopperOnly}, {2, 3, 8, 2, everywhere}},
}

func longStarShape(s stencil.Stencil, real kernels.Real, c longStars) shape {
	const row, reach, slots = 34 * 16, 2, 3 // of levels but the first
	return shape{
		depth: c.depth, cost: 1 + 0.35*float64(c.depth-1), name: "pass_stars", threads: 32 * c.team, axis: 2, vector: 16 / real.Size(), blocks: 1,
		shared: (c.lead+slots+(c.depth-1)*slots)*(c.rows*c.team+2*reach)*row + (c.team/2+1)*16 + 96,
		program: programOf("pass_stars.cu", s, real, option("DEPTH", c.depth), option("ROWS", c.rows), option("TEAM", c.team),
			option("LEAD", c.lead)),
	}
}
