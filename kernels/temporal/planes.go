package temporal

import (
	"math/bits"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// planes is how pass_planes.cu is compiled.
type planes struct {
	depth, rows, team, groups, lead, early int
	on                                     targets
}

// planesTried are those that registers have room for.
var planesTried = map[kernels.Real][]planes{
	kernels.Float64: {{4, 4, 8, 1, 3, 0, everywhere}, {4, 3, 8, 1, 3, 1, everywhere}, {3, 3, 12, 1, 3, 0, hopperOnly}, {3, 4, 8, 1, 3, 0, everywhere}, {2, 4, 8, 1, 3, 0, everywhere}},
	kernels.Float32: {{4, 4, 8, 1, 3, 1, upToHopper}, {4, 4, 8, 1, 3, 0, upToHopper}, {4, 3, 8, 1, 3, 1, everywhere}, {3, 5, 8, 1, 3, 1, upToHopper}, {3, 4, 8, 1, 3, 1, everywhere}, {2, 6, 8, 1, 3, 1, everywhere}},
}

// planesWithNorms are those of passes that take norms.
var planesWithNorms = map[kernels.Real][]planes{
	kernels.Float64: {{4, 3, 8, 1, 3, 0, everywhere}, {3, 4, 8, 1, 3, 0, everywhere}, {2, 5, 8, 1, 3, 0, upToHopper}, {2, 4, 8, 1, 3, 0, everywhere}},
	kernels.Float32: {{4, 3, 8, 1, 3, 0, everywhere}, {3, 4, 8, 1, 3, 0, everywhere}, {2, 4, 8, 1, 3, 0, everywhere}},
}

// planesOf returns those of passes with options.
func planesOf(real kernels.Real, o Options) []planes {
	if o.Norms > 0 {
		return planesWithNorms[real]
	}
	return planesTried[real]
}

func planesShape(s stencil.Stencil, real kernels.Real, c planes, o Options) shape {
	const row = 32 * 16
	ex, ey := row/real.Size(), c.rows*c.team
	levels, span, norms := 1, c.lead+c.depth, 0 // that have ghosts, and for how many planes
	if o.Moving {
		levels, span = c.depth, c.lead+1
	}
	if o.Norms > 0 {
		norms = 32 * c.team * normsOfThread(real, o)
	}
	slots := 1 << max(2, bits.Len(uint(span))) // of ghosts
	return shape{
		depth: c.depth, cost: 1 + 0.27*float64(c.depth-1), name: "pass_planes", threads: 32 * c.team, axis: 2, vector: 16 / real.Size(), blocks: 1, weight: 19, start: 4 * c.depth,
		shared: 2*c.depth*c.team*2*row + (c.lead+1)*ey*row + levels*2*slots*row + ceil(levels*c.team*slots*2*c.rows*real.Size(), 16)*16 + norms + 8*c.groups + 96,
		least:  [3]int{ex, ey, 1},
		program: withOptions(o, programOf("pass_planes.cu", s, real, option("DEPTH", c.depth), option("ROWS", c.rows), option("TEAM", c.team),
			option("GROUPS", c.groups), option("LEAD", c.lead), option("EARLY", c.early))),
	}
}

// normsOfThread is the bytes of struct PassNorms of one step.
func normsOfThread(real kernels.Real, o Options) int {
	if o.Sums == sums.Fast {
		return 40
	}
	return 88
}
