package datatypes

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// packFigure is a plot of what halox bench pack measures: curves over a parameter of
// the layouts.
type packFigure struct {
	axes
	rate      bool // GB/s of packing; else microseconds
	roundTrip bool // the time of packing and of unpacking
	pinned    bool // its paper packs into pinned host memory
	curves    []packCurve
}

func (f *packFigure) head() *axes { return &f.axes }

// packCurve is one contender on some layouts.
type packCurve struct {
	name    string
	layouts string    // regexp of suite/name/parameters
	by      contender // none for the contiguous copy
	dashed  bool
	twin    bool // it has the colour of the curve before it
}

// generalPackFigure is bandwidth over packed size, or another parameter, a curve an
// engine.
func generalPackFigure(a axes, contenders []contender) *packFigure {
	f := &packFigure{axes: a, rate: true}
	for _, c := range contenders {
		f.curves = append(f.curves, packCurve{name: c.String(), by: c})
	}
	f.curves = append(f.curves, packCurve{name: "contiguous copy", dashed: true})
	return f
}

// contenders returns those whose curves it shows, the driver's copies always.
func (f *packFigure) contenders() (all []contender) {
	if f.name != "" {
		all = append(all, contender{engine: packing.Copies})
	}
	for _, c := range f.curves {
		if c.by.engine != "" && !slices.Contains(all, c.by) {
			all = append(all, c.by)
		}
	}
	return all
}

// shows reports whether a curve is of the workload.
func (f *packFigure) shows(workload string) bool {
	return slices.ContainsFunc(f.curves, func(c packCurve) bool { return c.shows(workload) })
}

func (p *packCurve) shows(workload string) bool {
	return regexp.MustCompile(p.layouts).MatchString(workload)
}

// draw returns the figure of what was measured, without curves that have no point.
func (f *packFigure) draw(p *results.Record) plot.Curves {
	what := "time of packing (us)"
	switch {
	case f.rate:
		what = "packed bytes over time (GB/s)"
	case f.roundTrip:
		what = "time of packing and unpacking (us)"
	}
	c := plot.Curves{Title: fmt.Sprintf("%s\n%s, %s", f.title, firstDevice(p), packedInto(p)), XLabel: f.xLabel,
		YLabel: what, BytesX: f.x == packedBytes}
	groups := p.Groups()
	for _, curve := range f.curves {
		c.Curves = append(c.Curves, f.curve(curve, groups))
	}
	c.Curves = withPoints(c.Curves)
	return c
}

// packedInto says where packed bytes go.
func packedInto(p *results.Record) string {
	if len(p.Rows) > 0 && p.Rows[0].Text("memory") == ToPinned {
		return "pinned host memory"
	}
	return "device memory"
}

// curve draws one curve: the median of layouts with the same parameter.
func (f *packFigure) curve(c packCurve, groups []results.Group) plot.Curve {
	m := medians{}
	for i, g := range groups {
		first := g.Rows[0]
		if first.Text("direction") != results.Packed || !c.shows(first.Workload()) {
			continue
		}
		y, ok := f.value(c.by, g)
		if ok && f.roundTrip {
			var back float64
			back, ok = f.value(c.by, following(groups, i))
			y += back
		}
		if ok {
			m.add(&f.axes, first, y)
		}
	}
	return m.draw(plot.Curve{Name: c.name, Dashed: c.dashed, Twin: c.twin})
}

// following returns the group of unpacking that follows one of packing; or an empty group.
func following(groups []results.Group, i int) results.Group {
	if i+1 < len(groups) && groups[i+1].Rows[0].Text("direction") == results.Unpacked {
		return groups[i+1]
	}
	return results.Group{}
}

// value returns what the figure shows of a contender, if that was measured.
func (f *packFigure) value(by contender, g results.Group) (float64, bool) {
	if len(g.Rows) == 0 {
		return 0, false
	}
	us := g.Rows[0].Median(results.CopyTime)
	bytes, _ := g.Rows[0].Float(packedBytes)
	if by.engine != "" {
		row, ok := g.Of(by.String())
		if !ok {
			return 0, false
		}
		us = row.Median(results.Time)
	}
	if f.rate {
		return bytes / us / 1e3, us > 0
	}
	return us, us > 0
}

// firstDevice returns the name of the first device of a record, "" for none.
func firstDevice(r *results.Record) string {
	if len(r.Devices) == 0 {
		return ""
	}
	return r.Devices[0].Name
}

// The contenders of papers.
var (
	byCopies   = contender{engine: packing.Copies}
	byTargeted = contender{engine: packing.Targeted}
	byVectors  = contender{engine: packing.Transform}
	byBypass   = contender{engine: packing.Bypass}
	byUnits    = contender{engine: packing.Units}
	byTree     = contender{engine: packing.Tree}

	byPinnedList = contender{packing.Bypass, "list pinned", packing.Options{Pinned: true}}
	bySequential = contender{packing.Bypass, "sequential scan", packing.Options{Scan: pack.Sequential}}
	byParallel   = contender{packing.Bypass, "parallel scan", packing.Options{Scan: pack.Parallel}}
	byStatic     = contender{packing.Bypass, "32 threads a block", packing.Options{Lanes: 32}}

	byInner = contender{packing.Targeted, "inner loop", packing.Options{Loop: pack.InnerLoop}}
	byOuter = contender{packing.Targeted, "outer loop", packing.Options{Loop: pack.OuterLoop}}
)

// packFigures returns those of the papers.
func packFigures() []*packFigure {
	return slices.Concat(wuFigures(), jenkinsFigures(), handFigures())
}

// wuFigures are of Wu et al., HPDC 2016.
func wuFigures() []*packFigure {
	const v, t = "^wu/V/", "^wu/T/"
	return []*packFigure{{
		axes: matrixAxes("wu-6", "Wu et al., figure 6: bandwidth of packing a sub-matrix (V) and a triangle (T)"),
		rate: true,
		curves: []packCurve{
			{name: "V, targeted", layouts: v, by: byTargeted},
			{name: "T, units", layouts: t, by: byUnits},
			{name: "T in stairs of 256, units", layouts: "^wu/stairs/.*nb=256$", by: byUnits},
			{name: "contiguous copy of V's bytes", layouts: v, dashed: true},
		},
	}, {
		axes:      matrixAxes("wu-7", "Wu et al., figure 7: packing and unpacking a sub-matrix (V) and a triangle (T)"),
		roundTrip: true,
		curves: []packCurve{
			{name: "V, targeted", layouts: v, by: byTargeted},
			{name: "T, units", layouts: t, by: byUnits},
			{name: "contiguous copies of V's bytes", layouts: v, dashed: true},
		},
	}, {
		axes: axes{"wu-8",
			"Wu et al., figure 8: packing vectors, a kernel against the driver's 2-D copy",
			"wu", "block", "block size (bytes)"},
		curves: slices.Concat(
			pair("1000 blocks", "^wu/vector/blocks=1000,", byTargeted),
			pair("8000 blocks", "^wu/vector/blocks=8000,", byTargeted),
		),
	}}
}

// jenkinsFigures are of Jenkins et al., TPDS 2014, who pack into pinned host memory.
func jenkinsFigures() []*packFigure {
	return []*packFigure{{
		axes: bytesAxes("jenkins-4",
			"jenkins", "Jenkins et al., figure 4: packing, the type tree against the driver's copies"),
		pinned: true,
		curves: slices.Concat(
			pair("vector, 8 B", "^jenkins/vector-512/.*,block=8$", byTree),
			pair("vector, 128 B", "^jenkins/vector-512/.*,block=128$", byTree),
			pair("subarray", "^jenkins/subarray-4d/", byTree),
			pair("indexed, 8 B", "^jenkins/indexed/.*,block=8$", byTree),
			pair("indexed_block, 8 B", "^jenkins/idxblock/.*,block=8$", byTree),
			pair("struct", "^jenkins/struct/", byTree),
		),
	}, {
		axes: axes{"jenkins-5",
			"Jenkins et al., figure 5: packing 8192 blocks, the type tree against the driver's 2-D copy",
			"jenkins", "block", "block length (bytes)"},
		pinned: true,
		curves: pair("vector", "^jenkins/vector/", byTree),
	}}
}

// handFigures are of HAND, ICPP 2014.
func handFigures() []*packFigure {
	const (
		counts    = "^hand/indexed_block/.*,block=4$"
		lengths   = "^hand/indexed_block/blocks=32,"
		irregular = "^hand/indexed_block/.*,block=32$"
	)
	extents := func(name, which, what string) *packFigure {
		layouts := "^hand/subarray-4d-" + which + "/"
		return &packFigure{
			axes: axes{name, "HAND, figure " + what, "hand", "extent", which + "most extent"},
			curves: append(pair("subarray", layouts, byTargeted),
				packCurve{name: "a thread loops innermost (LoopT)", layouts: layouts, by: byInner},
				packCurve{name: "a thread loops outermost (LoopX)", layouts: layouts, by: byOuter},
				packCurve{name: "tree", layouts: layouts, by: byTree}),
		}
	}
	return []*packFigure{{
		axes: axes{"hand-4",
			"HAND, figure 4: packing an hvector of 32 blocks", "hand", "block", "block length (bytes)"},
		curves: append(pair("hvector", "^hand/hvector/", byTargeted),
			packCurve{name: "a thread a block (1-D)", layouts: "^hand/hvector/", by: byInner}),
	},
		extents("hand-5a", "inner", "5 (a): packing 4-D subarrays, 8 x 8 x 8 x T/2"),
		extents("hand-5b", "outer", "5 (b): packing 4-D subarrays, X/2 x 8 x 8 x 8"), {
			axes: bytesAxes("hand-6", "hand", "HAND, figure 6: packing an indexed_block"),
			curves: slices.Concat(
				pair("blocks of 4 B", counts, byTargeted),
				[]packCurve{{name: "blocks of 4 B, transform", layouts: counts, by: byVectors}},
				pair("32 blocks", lengths, byTargeted),
				[]packCurve{{name: "32 blocks, transform", layouts: lengths, by: byVectors}},
			),
		}, {
			axes: bytesAxes("hand-7", "hand", "HAND, figure 7: where the list of blocks lies"),
			curves: []packCurve{
				{name: "blocks of 4 B, list copied", layouts: counts, by: byBypass},
				{name: "blocks of 4 B, list pinned", layouts: counts, by: byPinnedList, dashed: true, twin: true},
				{name: "32 blocks, list copied", layouts: lengths, by: byBypass},
				{name: "32 blocks, list pinned", layouts: lengths, by: byPinnedList, dashed: true, twin: true},
			},
		}, {
			axes: axes{"hand-8",
				"HAND, figure 8: thread blocks that adapt to the blocks, and those that do not",
				"hand", "blocks", "blocks of 32 bytes"},
			curves: []packCurve{
				{name: "adaptive", layouts: irregular, by: byBypass},
				{name: "32 threads along a block", layouts: irregular, by: byStatic},
			},
		}, {
			axes: axes{"hand-9",
				"HAND, figure 9: how the lengths of blocks are summed up", "hand", "blocks", "blocks of 4 bytes"},
			curves: []packCurve{
				{name: "sequential scan", layouts: counts, by: bySequential},
				{name: "parallel scan", layouts: counts, by: byParallel},
			},
		}}
}

// pair returns the curves of an engine and, dashed, of the driver's copies.
func pair(name, layouts string, by contender) []packCurve {
	return []packCurve{
		{name: fmt.Sprintf("%s, %v", name, by), layouts: layouts, by: by},
		{name: name + ", copies", layouts: layouts, by: byCopies, dashed: true, twin: true},
	}
}
