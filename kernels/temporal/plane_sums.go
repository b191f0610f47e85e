package temporal

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/stencil"
)

// planeSums is how pass_sums.cu is compiled.
type planeSums struct {
	depth, rows, team, lead int
	on                      targets
}

// planeSumsTried are those that registers have room for. Three steps in float32 were slower on an H100.
var planeSumsTried = map[kernels.Real][]planeSums{
	kernels.Float64: {{2, 4, 8, 3, everywhere}},
	kernels.Float32: {{2, 2, 16, 3, everywhere}, {2, 4, 8, 3, everywhere}},
}

func planeSumsShape(s stencil.Stencil, real kernels.Real, c planeSums) shape {
	const row, slots = 32 * 16, 4 // of levels but the first
	text, _ := source.Planar(s, real.Size())
	program := programOf("pass_sums.cu", s, real, option("DEPTH", c.depth), option("ROWS", c.rows), option("TEAM", c.team), option("LEAD", c.lead))
	program.Headers = append(program.Headers, kernels.Header{Name: source.PlanarHeader, Text: text})
	return shape{
		depth: c.depth, cost: 1 + 0.5*float64(c.depth-1), name: "pass_sums", threads: 32 * c.team, axis: 2, vector: 16 / real.Size(), blocks: 1, weight: 30, start: 7 * c.depth,
		shared:  (c.lead+slots+(c.depth-1)*slots)*c.rows*c.team*row + 16 + 96,
		program: program,
	}
}
