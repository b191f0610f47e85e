package temporal

import (
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// strips is how pass_strips.cu is compiled.
type strips struct {
	depth, points, team, blocks, groups, lead int
	on                                        targets
}

// stripsTried are those that registers have room for.
var stripsTried = map[kernels.Real][]strips{
	kernels.Float64: {
		{10, 3, 12, 1, 6, 2, hopperOnly}, {10, 4, 8, 1, 3, 2, everywhere}, {8, 4, 4, 2, 2, 2, everywhere},
		{6, 4, 12, 1, 2, 2, hopperOnly}, {6, 4, 4, 2, 2, 2, everywhere}, {4, 4, 4, 3, 2, 2, everywhere}, {2, 4, 4, 4, 1, 2, everywhere},
	},
	kernels.Float32: {
		{12, 4, 8, 2, 2, 2, hopperOnly}, {12, 4, 8, 1, 2, 2, everywhere}, {10, 4, 4, 3, 4, 2, everywhere},
		{8, 4, 4, 3, 2, 2, everywhere}, {6, 4, 4, 4, 2, 2, everywhere},
		{4, 4, 4, 4, 2, 2, everywhere}, {2, 4, 4, 4, 1, 2, everywhere},
	},
}

// stripsWithMore is how pass_strips.cu is compiled for passes with options, which take the norms of so many last steps at most.
type stripsWithMore struct {
	strips
	reproducible, fast, moving int // by the mode of sums; between walls that move
}

// stripsWithMoreTried are those that registers have room for, of each depth first what has the most warps.
var stripsWithMoreTried = map[kernels.Real][]stripsWithMore{
	kernels.Float64: {
		{strips{10, 4, 8, 1, 3, 2, everywhere}, 0, 0, 0}, {strips{8, 4, 4, 2, 2, 2, everywhere}, 1, 1, 1}, {strips{6, 4, 4, 2, 2, 2, everywhere}, 1, 1, 1},
		{strips{4, 4, 4, 3, 2, 2, fromHopper}, 1, 1, 1}, {strips{4, 4, 4, 2, 2, 2, everywhere}, 4, 4, 4},
		{strips{3, 4, 4, 3, 1, 2, everywhere}, 1, 1, 1}, {strips{3, 4, 4, 2, 1, 2, everywhere}, 3, 3, 3},
		{strips{2, 4, 4, 3, 1, 2, everywhere}, 2, 2, 2},
	},
	kernels.Float32: {
		{strips{12, 4, 8, 1, 2, 2, everywhere}, 1, 1, 1}, {strips{10, 4, 4, 3, 2, 2, fromHopper}, 1, 1, 0}, {strips{8, 4, 4, 3, 2, 2, everywhere}, 1, 1, 1}, {strips{6, 4, 4, 3, 2, 2, everywhere}, 1, 1, 1},
		{strips{4, 4, 4, 4, 2, 2, fromHopper}, 1, 1, 1}, {strips{4, 4, 4, 3, 2, 2, fromHopper}, 3, 4, 3}, {strips{4, 4, 4, 3, 2, 2, everywhere}, 3, 4, 3}, {strips{4, 4, 4, 2, 2, 2, everywhere}, 4, 4, 4},
		{strips{3, 4, 4, 4, 1, 2, everywhere}, 1, 1, 1}, {strips{3, 4, 4, 3, 1, 2, everywhere}, 3, 3, 3},
		{strips{2, 4, 4, 4, 1, 2, fromHopper}, 2, 2, 2}, {strips{2, 4, 4, 3, 1, 2, everywhere}, 2, 2, 2},
	},
}

// stripsFor returns those for passes of a target with options: with any but plain ones one of each depth.
func stripsFor(real kernels.Real, arch string, o Options) (all []strips) {
	if o.plain() {
		return slices.DeleteFunc(slices.Clone(stripsTried[real]), func(c strips) bool { return !c.on.has(arch) })
	}
	for _, c := range stripsWithMoreTried[real] {
		most := c.reproducible
		if o.Sums == sums.Fast {
			most = c.fast
		}
		if o.Moving {
			most = min(most, c.moving)
		}
		if o.Norms <= most && c.on.has(arch) && !slices.ContainsFunc(all, func(s strips) bool { return s.depth == c.depth }) {
			all = append(all, c.strips)
		}
	}
	return all
}

func stripsShape(s stencil.Stencil, real kernels.Real, c strips, o Options) shape {
	vector := 16 / real.Size()
	for c.points%vector != 0 {
		vector /= 2
	}
	const ringMore, run = 3, 32 // rows of the ring that are in use, beside those ahead; bytes of a run
	rows := c.team * (c.lead + ringMore) * 32 * c.points
	narrow := c.depth * 3 * (2*c.depth + 1)
	edges, ghosts := 2*(c.team+1)*2*c.depth, 0
	if o.Moving {
		ghosts = 2 * (c.lead + ringMore) * c.depth
	}
	return shape{
		depth: c.depth, cost: 1 + 0.15*float64(c.depth-1) + 0.3*float64(o.Norms), name: "pass_strips", threads: 32 * c.team, axis: 1, vector: vector, blocks: c.blocks, weight: 20, start: 8 * c.depth,
		shared: ceil((max(rows, narrow)+edges+ghosts)*real.Size(), 16)*16 + ceil(run+8*c.groups, 16)*16,
		program: withOptions(o, programOf("pass_strips.cu", s, real, option("DEPTH", c.depth), option("POINTS", c.points), option("TEAM", c.team),
			option("BLOCKS", c.blocks), option("GROUPS", c.groups), option("LEAD", c.lead))),
	}
}
