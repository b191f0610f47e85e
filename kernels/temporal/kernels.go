package temporal

import (
	"math/bits"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// shapesWith returns the kernels for a stencil and arrays of a layout on an architecture such as "sm_90", whose
// blocks may have the given bytes of shared memory.
func shapesWith(
	s stencil.Stencil, real domain.Element, l domain.Layout, arch string, shared int, o Options,
) (all []shape) {
	if !o.plain() {
		shared -= normsShared
	}
	all = slices.DeleteFunc(inRegisters(s, real, l, arch, o), func(one shape) bool { return one.shared > shared })
	for depth := max(2, o.Norms); depth <= 4; depth++ {
		if one, ok := generalShape(s, real, depth, shared, o); ok {
			all = append(all, one)
		}
	}
	return slices.DeleteFunc(all, func(one shape) bool { // no kernel of its depth supports additional boxes
		return !slices.ContainsFunc(all, func(s shape) bool { return s.depth == one.depth && s.least == [3]int{} })
	})
}

// inRegisters returns the kernels whose levels are in registers, if the architecture has enough registers.
func inRegisters(s stencil.Stencil, real domain.Element, l domain.Layout, arch string, o Options) (all []shape) {
	vector := int64(16 / real.Size())
	if !l.Padded() || l.Pitch%vector != 0 || l.Plane%vector != 0 {
		return nil
	}
	_, star := s.AsStar()
	_, planar := source.Planar(s, real.Size())
	switch {
	case planar && o.plain():
		for _, c := range planeSumsTried[real] {
			if c.on.has(arch) {
				all = append(all, planeSumsShape(s, real, c))
			}
		}
	case longStar(s) && o.plain():
		for _, c := range longStarsTried[real] {
			if c.on.has(arch) {
				all = append(all, longStarShape(s, real, c))
			}
		}
	case !star:
	case s.Dims == 3 && o.Norms <= 1:
		for _, c := range planesOf(real, o) {
			if c.on.has(arch) {
				all = append(all, planesShape(s, real, c, o))
			}
		}
	case s.Dims == 2:
		for _, c := range stripsFor(real, arch, o) {
			all = append(all, stripsShape(s, real, c, o))
		}
	}
	return all
}

// normsShared is the largest shared memory, in bytes, in which a block joins its norms.
const normsShared = 3 << 10

// generalShape returns the kernel of pass.cu with the best tile, if its levels fit in shared memory.
func generalShape(s stencil.Stencil, real domain.Element, depth, shared int, o Options) (one shape, ok bool) {
	var r [3]int
	for a := range s.Dims {
		r[a] = s.AxisRadius(a)
	}
	along, turn, rows, threads := r[2], 1, 4, 512
	const many = 16 // terms of float64
	switch {        // they take registers, and so do norms
	case o.Norms > 1:
		threads = 256
	case o.Norms > 0, real.Size() == 8 && len(s.Footprint()) > many:
		threads = 384
	}
	wide, high := []int{64, 32, 16}, []int{64, 56, 48, 40, 32, 24, 16, 8}
	if s.Dims == 2 {
		along, turn, rows, threads = r[1], 4, 1, 256
		wide, high = []int{512, 256, 128, 64}, []int{1}
	}
	for _, w := range wide {
		for _, h := range high {
			ex, ey := w+2*depth*r[0], 1
			if s.Dims == 3 {
				ey = h + 2*depth*r[1]
			}
			bytes := depth * 2 * (turn + along) * ex * ey * real.Size()
			kept := float64(w*h) / float64(ex*ey)
			wider := (one.tile[0] + 2*depth*r[0]) * max(1, one.tile[1]+2*depth*r[1])
			if bytes > shared || kept < 0.3 || ok && kept < 1.05*float64(one.tile[0]*one.tile[1])/float64(wider) {
				continue
			}
			ok = true
			one = shape{
				depth: depth, cost: 1 + 0.8*float64(depth-1), name: "pass", threads: threads, shared: bytes, vector: 1,
				tile: [3]int{w, h, 0}, axis: s.Dims - 1, warmUp: depth * (2*along + turn),
			}
			ry := r[1]
			if s.Dims == 2 {
				ry = 0
			}
			one.program = withOptions(o, programOf("pass.cu", s, real,
				option("DEPTH", depth), option("RX", r[0]), option("RY", ry), option("RL", along), option("WIDE", w),
				option("HIGH", h), option("TURN", turn), option("ROWS", rows), option("THREADS", threads)))
		}
	}
	return one, ok
}

// planes is a variant of pass_planes.cu.
type planes struct {
	depth, rows, team, groups, lead, early int
	on                                     targets
}

// planesTried are those with enough registers.
var planesTried = map[domain.Element][]planes{
	domain.Float64: {
		{4, 4, 8, 1, 3, 0, everywhere}, {4, 3, 8, 1, 3, 1, everywhere}, {3, 3, 12, 1, 3, 0, hopperOnly},
		{3, 4, 8, 1, 3, 0, everywhere}, {2, 4, 8, 1, 3, 0, everywhere},
	},
	domain.Float32: {
		{4, 4, 8, 1, 3, 1, upToHopper}, {4, 4, 8, 1, 3, 0, upToHopper}, {4, 3, 8, 1, 3, 1, everywhere},
		{3, 5, 8, 1, 3, 1, upToHopper}, {3, 4, 8, 1, 3, 1, everywhere}, {2, 6, 8, 1, 3, 1, everywhere},
	},
}

// planesWithNorms are the variants for passes with norms.
var planesWithNorms = map[domain.Element][]planes{
	domain.Float64: {
		{4, 3, 8, 1, 3, 0, everywhere}, {3, 4, 8, 1, 3, 0, everywhere}, {2, 5, 8, 1, 3, 0, upToHopper},
		{2, 4, 8, 1, 3, 0, everywhere},
	},
	domain.Float32: {{4, 3, 8, 1, 3, 0, everywhere}, {3, 4, 8, 1, 3, 0, everywhere}, {2, 4, 8, 1, 3, 0, everywhere}},
}

// planesOf returns the variants for passes with options.
func planesOf(real domain.Element, o Options) []planes {
	if o.Norms > 0 {
		return planesWithNorms[real]
	}
	return planesTried[real]
}

func planesShape(s stencil.Stencil, real domain.Element, c planes, o Options) shape {
	const row = 32 * 16
	ex, ey := row/real.Size(), c.rows*c.team
	levels, span, norms := 1, c.lead+c.depth, 0 // with ghosts, and for how many planes
	if o.Moving {
		levels, span = c.depth, c.lead+1
	}
	if o.Norms > 0 {
		norms = 32 * c.team * normsOfThread(real, o)
	}
	slots := 1 << max(2, bits.Len(uint(span))) // of ghosts
	return shape{
		depth: c.depth, cost: 1 + 0.27*float64(c.depth-1), name: "pass_planes", threads: 32 * c.team, axis: 2,
		vector: 16 / real.Size(), blocks: 1, weight: 19, start: 4 * c.depth, least: [3]int{ex, ey, 1},
		shared: 2*c.depth*c.team*2*row + (c.lead+1)*ey*row + levels*2*slots*row +
			ceil(levels*c.team*slots*2*c.rows*real.Size(), 16)*16 + norms + 8*c.groups + 96,
		program: withOptions(o, programOf("pass_planes.cu", s, real, option("DEPTH", c.depth), option("ROWS", c.rows),
			option("TEAM", c.team), option("GROUPS", c.groups), option("LEAD", c.lead), option("EARLY", c.early))),
	}
}

// normsOfThread is the size in bytes of struct PassNorms of one step.
func normsOfThread(real domain.Element, o Options) int {
	if o.Sums == sums.Fast {
		return 40
	}
	return 88
}

// strips is a variant of pass_strips.cu.
type strips struct {
	depth, points, team, blocks, groups, lead int
	on                                        targets
}

// stripsTried are those with enough registers.
var stripsTried = map[domain.Element][]strips{
	domain.Float64: {
		{10, 3, 12, 1, 6, 2, hopperOnly}, {10, 4, 8, 1, 3, 2, everywhere}, {8, 4, 4, 2, 2, 2, everywhere},
		{6, 4, 12, 1, 2, 2, hopperOnly}, {6, 4, 4, 2, 2, 2, everywhere},
		{4, 4, 4, 3, 2, 2, everywhere}, {2, 4, 4, 4, 1, 2, everywhere},
	},
	domain.Float32: {
		{12, 4, 8, 2, 2, 2, hopperOnly}, {12, 4, 8, 1, 2, 2, everywhere}, {10, 4, 4, 3, 4, 2, everywhere},
		{8, 4, 4, 3, 2, 2, everywhere}, {6, 4, 4, 4, 2, 2, everywhere},
		{4, 4, 4, 4, 2, 2, everywhere}, {2, 4, 4, 4, 1, 2, everywhere},
	},
}

// stripsWithMore is a variant of pass_strips.cu for passes with options.
type stripsWithMore struct {
	strips
	// The largest number of last steps with norms, by the mode of sums, and with moving walls.
	reproducible, fast, moving int
}

// stripsWithMoreTried are those with enough registers, for each depth the one with the most warps first.
var stripsWithMoreTried = map[domain.Element][]stripsWithMore{
	domain.Float64: {
		{strips{10, 4, 8, 1, 3, 2, everywhere}, 0, 0, 0}, {strips{8, 4, 4, 2, 2, 2, everywhere}, 1, 1, 1},
		{strips{6, 4, 4, 2, 2, 2, everywhere}, 1, 1, 1},
		{strips{4, 4, 4, 3, 2, 2, fromHopper}, 1, 1, 1}, {strips{4, 4, 4, 2, 2, 2, everywhere}, 4, 4, 4},
		{strips{3, 4, 4, 3, 1, 2, everywhere}, 1, 1, 1}, {strips{3, 4, 4, 2, 1, 2, everywhere}, 3, 3, 3},
		{strips{2, 4, 4, 3, 1, 2, everywhere}, 2, 2, 2},
	},
	domain.Float32: {
		{strips{12, 4, 8, 1, 2, 2, everywhere}, 1, 1, 1}, {strips{10, 4, 4, 3, 2, 2, fromHopper}, 1, 1, 0},
		{strips{8, 4, 4, 3, 2, 2, everywhere}, 1, 1, 1}, {strips{6, 4, 4, 3, 2, 2, everywhere}, 1, 1, 1},
		{strips{4, 4, 4, 4, 2, 2, fromHopper}, 1, 1, 1}, {strips{4, 4, 4, 3, 2, 2, fromHopper}, 3, 4, 3},
		{strips{4, 4, 4, 3, 2, 2, everywhere}, 3, 4, 3}, {strips{4, 4, 4, 2, 2, 2, everywhere}, 4, 4, 4},
		{strips{3, 4, 4, 4, 1, 2, everywhere}, 1, 1, 1}, {strips{3, 4, 4, 3, 1, 2, everywhere}, 3, 3, 3},
		{strips{2, 4, 4, 4, 1, 2, fromHopper}, 2, 2, 2}, {strips{2, 4, 4, 3, 1, 2, everywhere}, 2, 2, 2},
	},
}

// stripsFor returns the variants for passes on an architecture: one of each depth unless the options are plain.
func stripsFor(real domain.Element, arch string, o Options) (all []strips) {
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
		sameDepth := func(s strips) bool { return s.depth == c.depth }
		if o.Norms <= most && c.on.has(arch) && !slices.ContainsFunc(all, sameDepth) {
			all = append(all, c.strips)
		}
	}
	return all
}

func stripsShape(s stencil.Stencil, real domain.Element, c strips, o Options) shape {
	vector := 16 / real.Size()
	for c.points%vector != 0 {
		vector /= 2
	}
	const ringMore, run = 3, 32 // rows of the ring that are in use, besides those ahead; bytes of a run
	rows := c.team * (c.lead + ringMore) * 32 * c.points
	narrow := c.depth * 3 * (2*c.depth + 1)
	edges, ghosts := 2*(c.team+1)*2*c.depth, 0
	if o.Moving {
		ghosts = 2 * (c.lead + ringMore) * c.depth
	}
	return shape{
		depth: c.depth, cost: 1 + 0.15*float64(c.depth-1) + 0.3*float64(o.Norms), name: "pass_strips",
		threads: 32 * c.team, axis: 1, vector: vector, blocks: c.blocks, weight: 20, start: 8 * c.depth,
		shared: ceil((max(rows, narrow)+edges+ghosts)*real.Size(), 16)*16 + ceil(run+8*c.groups, 16)*16,
		program: withOptions(
			o,
			programOf("pass_strips.cu", s, real, option("DEPTH", c.depth), option("POINTS", c.points),
				option("TEAM", c.team), option("BLOCKS", c.blocks), option("GROUPS", c.groups), option("LEAD", c.lead)),
		),
	}
}

// longStar reports whether a stencil is a three-dimensional star of radius 2.
func longStar(s stencil.Stencil) bool {
	for a := range s.Dims {
		if s.AxisRadius(a) != 2 {
			return false
		}
	}
	return s.Dims == 3 && s.Footprint().Axes() == 1
}

// longStars is a variant of pass_stars.cu.
type longStars struct {
	depth, rows, team, lead int
	on                      targets
}

// longStarsTried are those with enough registers. More rows per warp, and three steps in float32, were slower on
// an H100.
var longStarsTried = map[domain.Element][]longStars{
	domain.Float64: {{2, 4, 12, 2, hopperOnly}, {2, 4, 8, 2, upToHopper}, {2, 3, 8, 2, everywhere}},
	domain.Float32: {{2, 2, 16, 2, hopperOnly}, {2, 3, 8, 2, everywhere}},
}

func longStarShape(s stencil.Stencil, real domain.Element, c longStars) shape {
	const row, reach, slots = 34 * 16, 2, 3 // of levels but the first
	return shape{
		depth: c.depth, cost: 1 + 0.35*float64(c.depth-1), name: "pass_stars", threads: 32 * c.team, axis: 2,
		vector: 16 / real.Size(), blocks: 1,
		shared: (c.lead+slots+(c.depth-1)*slots)*(c.rows*c.team+2*reach)*row + (c.team/2+1)*16 + 96,
		program: programOf("pass_stars.cu", s, real, option("DEPTH", c.depth), option("ROWS", c.rows),
			option("TEAM", c.team), option("LEAD", c.lead)),
	}
}

// planeSums is a variant of pass_sums.cu.
type planeSums struct {
	depth, rows, team, lead int
	on                      targets
}

// planeSumsTried are those with enough registers. Three steps in float32 were slower on an H100.
var planeSumsTried = map[domain.Element][]planeSums{
	domain.Float64: {{2, 4, 8, 3, everywhere}},
	domain.Float32: {{2, 2, 16, 3, everywhere}, {2, 4, 8, 3, everywhere}},
}

func planeSumsShape(s stencil.Stencil, real domain.Element, c planeSums) shape {
	const row, slots = 32 * 16, 4 // of levels but the first
	text, _ := source.Planar(s, real.Size())
	program := programOf("pass_sums.cu", s, real, option("DEPTH", c.depth), option("ROWS", c.rows),
		option("TEAM", c.team), option("LEAD", c.lead))
	program.Headers = append(program.Headers, kernels.Header{Name: source.PlanarHeader, Text: text})
	return shape{
		depth: c.depth, cost: 1 + 0.5*float64(c.depth-1), name: "pass_sums", threads: 32 * c.team, axis: 2,
		vector: 16 / real.Size(), blocks: 1, weight: 30, start: 7 * c.depth,
		shared: (c.lead+slots+(c.depth-1)*slots)*c.rows*c.team*row + 16 + 96, program: program,
	}
}
