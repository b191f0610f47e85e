package datatypes

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// Locations of packed bytes.
const (
	ToDevice = "device"
	ToPinned = "pinned" // host memory mapped into the device
	ToCopied = "copied" // a buffer of the device, copied to or from pinned host memory
)

// packedBytes is the parameter that every layout has.
const packedBytes = "bytes"

// layoutOf begins the row of a workload.
func layoutOf(w workloads.Workload) results.Row {
	return results.LayoutRow(w.Suite, w.Name, w.Params, w.Bytes)
}

// contender is an engine with its options.
type contender struct {
	engine  packing.Engine
	variant string // name of the options; "" for the defaults of the engine
	options packing.Options
	fresh   bool // each message gets a new job, by the host's clock
}

// String names it as results do.
func (c contender) String() string { return c.row().Contender() }

// row begins the row of a contender.
func (c contender) row() results.Row {
	return results.NewRow().Label("engine", c.engine).Label("variant", c.variant)
}

// figure is a plot of measurements of halox bench pack or halox bench pingpong: curves over a parameter of the layouts.
type figure struct {
	axes
	kind      results.Kind // of its records
	shown     quantity
	curves    []curve  // of ping-pongs: of each as many as the record has channels
	roundTrip bool     // the sum of packing and of unpacking
	hosts     bool     // times by the host's clock, each message waited for
	memory    []string // of packed bytes, for packing; nil for the flag's
	blocks    []int    // maximum numbers of thread blocks; nil for the flag's

	// Of ping-pongs.
	contiguous string      // what the contiguous messages of the first curve's layouts are called; "" for none
	paths      []string    // those of its paper, nil for the flags'
	by         []contender // its own, nil for the flags'
	busy       []float64   // fractions that another kernel keeps busy; nil for the flag's
}

// The labels of settings of a run over which figures are drawn.
const (
	overBlocks = "thread_blocks"
	overBusy   = "busy"
)

// axes are what curves are drawn over.
type axes struct {
	name, title string
	suite       string // that all its layouts are of; "" for any
	x           string // the parameter, packedBytes, or the label of a setting
	xLabel      string
}

// matrixAxes is time or rate over the edge of Wu's matrices.
func matrixAxes(name, title string) axes { return axes{name, title, "wu", "n", "matrix size"} }

// bytesAxes is time or rate over packed bytes.
func bytesAxes(name, suite, title string) axes {
	return axes{name, title, suite, packedBytes, "packed bytes"}
}

// quantity is the value of a row that a figure shows.
type quantity struct {
	label string
	of    func(r results.Row) float64
}

func timeOf(r results.Row) float64 { return r.Median(results.Time) }

var (
	packTime   = quantity{"time of packing (µs)", timeOf}
	bothTimes  = quantity{"time of packing and unpacking (µs)", timeOf}
	oneWayTime = quantity{"time of one way (µs)", timeOf}
	byteRate   = quantity{"packing rate (GB/s)",
		func(r results.Row) float64 { return r.Median(results.Rate) }}
	linkShare = quantity{"bandwidth (% of a contiguous message's)",
		func(r results.Row) float64 { return 100 * r.Median(results.Share) }}
)

// curve is one contender on some layouts.
type curve struct {
	name      string
	layouts   string    // regexp of suite/name/parameters
	by        contender // that packs
	memory    string    // of the packed bytes; "" for any
	channel   string    // of ping-pongs, as rows name it; with no contender either, the contiguous copy
	dashed    bool
	sameColor bool // it has the color of the curve before it
}

// shows reports whether the curve is of the workload.
func (c *curve) shows(workload string) bool {
	return regexp.MustCompile(c.layouts).MatchString(workload)
}

// shows reports whether a curve is of the workload.
func (f *figure) shows(workload string) bool {
	return slices.ContainsFunc(f.curves, func(c curve) bool { return c.shows(workload) })
}

// has reports whether the workload has the parameter of the figure's x axis, above 0.
func (f *figure) has(w workloads.Workload) bool {
	x, ok := layoutOf(w).Float(f.x)
	return ok && x > 0 || f.overSetting()
}

// overSetting reports whether the x axis is a setting of the run, not a parameter of layouts.
func (f *figure) overSetting() bool { return f.x == overBlocks || f.x == overBusy }

// contenders returns those whose curves it shows.
func (f *figure) contenders() []contender { return f.contendersOf(func(curve) bool { return true }) }

// contendersOf returns those of some curves, the driver's copies always, except by few thread blocks or the host's
// clock.
func (f *figure) contendersOf(some func(c curve) bool) (all []contender) {
	if f.name != "" && f.blocks == nil && !f.hosts {
		all = append(all, byCopies)
	}
	for _, c := range f.curves {
		if c.by.engine != "" && !slices.Contains(all, c.by) && some(c) {
			all = append(all, c.by)
		}
	}
	return all
}

// draw returns the figure of a record, without curves that have no points.
func (f *figure) draw(r *results.Record) plot.Curves {
	c := plot.Curves{Title: f.title, Note: strings.TrimSuffix(f.measured(r)+", "+results.Made(results.Source{Record: r}), ", "), XLabel: f.xLabel, YLabel: f.shown.label,
		BytesX: f.x == packedBytes, LinearX: f.x == overBusy}
	groups, alone := r.Groups(), false
	for _, one := range f.drawn(r) {
		points := f.points(one, groups)
		drawn := plot.Curve{Name: one.name, Dashed: one.dashed, Bound: one.by.engine == "" && one.channel == ""}
		if one.sameColor && !alone {
			drawn.Color = c.Curves[len(c.Curves)-1].Name
		}
		for _, x := range slices.SortedFunc(maps.Keys(points), cmp.Compare) {
			ys := slices.Sorted(slices.Values(points[x]))
			drawn.X, drawn.Y = append(drawn.X, x), append(drawn.Y, ys[len(ys)/2])
		}
		if alone = len(points) == 0; !alone {
			c.Curves = append(c.Curves, drawn)
		}
	}
	span := c.Span()
	c.LinearY = span.Hi < 4*span.Lo
	return c
}

// measured describes the devices of the record.
func (f *figure) measured(r *results.Record) string {
	var first results.Row
	if len(r.Rows) > 0 {
		first = r.Rows[0]
	}
	if f.kind == results.KindPingPong {
		return strings.TrimSuffix(r.Between()+", "+first.Limits(), ", ")
	}
	name, memory := "", "device memory"
	if len(r.Devices) > 0 {
		name = r.Devices[0].Name
	}
	if first.Text("memory") == ToPinned {
		memory = "pinned host memory"
	}
	if len(f.memory) > 1 {
		return name
	}
	return name + ", " + memory
}

// drawn returns the curves for a record: those of ping-pongs for each of its channels, in the order of its rows. The
// driver's copies are dashed, next to an engine over the same path.
func (f *figure) drawn(r *results.Record) (all []curve) {
	if f.kind == results.KindPack {
		return f.curves
	}
	for _, c := range f.curves {
		before := results.Row{}
		known := map[string]bool{}
		for _, row := range r.Rows {
			one := c
			if one.channel = row.Contender(); one.channel == "" || known[one.channel] {
				continue
			}
			one.name = strings.TrimPrefix(c.name+", "+one.channel, ", ")
			one.dashed = row.Text("engine") == string(packing.Copies) && before.Text("path") == row.Text("path")
			one.sameColor = one.dashed
			all, before, known[one.channel] = append(all, one), row, true
		}
	}
	if f.contiguous != "" {
		all = append(all, curve{name: f.contiguous, layouts: f.curves[0].layouts, dashed: true})
	}
	return all
}

// points returns the points of a curve: one per value of the parameter.
func (f *figure) points(c curve, groups []results.Group) map[float64][]float64 {
	all := map[float64][]float64{}
	for i, g := range groups {
		first := g.Rows[0]
		x, placed := first.Float(f.x)
		if !placed || x <= 0 && f.x != overBusy || first.Text("direction") == results.Unpacked ||
			!c.shows(first.Workload()) || c.memory != "" && c.memory != first.Text("memory") {
			continue
		}
		y, ok := f.value(c, g)
		if f.roundTrip && ok {
			back := 0.0
			if ok = i+1 < len(groups) && groups[i+1].Rows[0].Text("direction") == results.Unpacked; ok {
				back, ok = f.value(c, groups[i+1])
			}
			y += back
		}
		if ok && y > 0 {
			all[x] = append(all[x], y)
		}
	}
	return all
}

// value returns the value of a curve's contender, or of the contiguous copy, if it was measured.
func (f *figure) value(c curve, g results.Group) (float64, bool) {
	by := cmp.Or(c.channel, c.by.String())
	if by != "" {
		row, ok := g.Of(by)
		return f.shown.of(row), ok
	}
	plain, ok := g.Rows[0].Get(results.CopyTime)
	bytes, _ := g.Rows[0].Float(packedBytes)
	return f.shown.of(results.NewRow().Transfer(int64(bytes), plain, plain)), ok
}

// Figure is a figure of a paper, drawn from a record of one kind.
type Figure struct {
	Name, Title string
	Of          results.Kind
	Draw        func(r *results.Record) plot.Curves
}

// Figures returns those of packing, and then those of ping-pongs.
func Figures() (all []Figure) {
	for _, f := range figures() {
		all = append(all, Figure{f.name, f.title, f.kind, f.draw})
	}
	return all
}

// named returns a figure by its name.
func named(kind results.Kind, name string) (*figure, error) {
	var names []string
	for _, f := range figures() {
		if f.kind != kind {
			continue
		}
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return nil, fmt.Errorf("--figure: must be one of %s or list, got %q", strings.Join(names, ", "), name)
}

// figures returns those of the papers: of packing, and then of ping-pongs.
func figures() []*figure {
	all := slices.Concat(wuFigures(), jenkinsFigures(), handFigures())
	for _, f := range all {
		if f.kind = results.KindPack; f.shown.of == nil {
			f.shown = packTime
		}
	}
	pings := pingFigures()
	for _, f := range pings {
		f.kind = results.KindPingPong
	}
	return append(all, pings...)
}

// The contenders of papers.
var (
	byCopies   = contender{engine: packing.Copies}
	byTargeted = contender{engine: packing.Targeted}
	byVectors  = contender{engine: packing.Transform}
	byBypass   = contender{engine: packing.Bypass}
	byUnits    = contender{engine: packing.Units}
	byTree     = contender{engine: packing.Tree}

	byPinnedList = with(packing.Bypass, "list pinned", packing.Options{Pinned: true})
	byCopiedList = with(packing.Bypass, "list copied each time", packing.Options{Upload: true})
	bySequential = with(packing.Bypass, "sequential scan", packing.Options{Scan: pack.Sequential})
	byParallel   = with(packing.Bypass, "parallel scan", packing.Options{Scan: pack.Parallel})
	byStatic     = with(packing.Bypass, "32 threads per block", packing.Options{Lanes: 32})
	byStatic2D   = with(packing.Targeted, "32 threads per block", packing.Options{Lanes: 32})
	byLaunches   = with(packing.Transform, "a launch per vector", packing.Options{Each: true})
	byPrimitives = with(packing.Tree, "a primitive per thread", packing.Options{Primitive: true})

	byInner = with(packing.Targeted, "inner loop", packing.Options{Loop: pack.InnerLoop})
	byOuter = with(packing.Targeted, "outer loop", packing.Options{Loop: pack.OuterLoop})

	byNewUnits   = contender{packing.Units, "cut meanwhile", packing.Options{Uncached: true}, true}
	byUnitsAhead = contender{packing.Units, "cut before", packing.Options{Uncached: true, Ahead: true}, true}
)

// with returns the contender of an engine with options that have a name.
func with(e packing.Engine, variant string, o packing.Options) contender {
	return contender{engine: e, variant: variant, options: o}
}

// upTo returns the numbers of thread blocks of figures 13 and 14 of Wu et al.
func upTo528() []int { return []int{1, 2, 4, 8, 16, 32, 64, 132, 264, 528} }

// wuFigures are of Wu et al., HPDC 2016.
func wuFigures() []*figure {
	const v, t = "^wu/V/", "^wu/T/"
	return []*figure{{
		axes:  matrixAxes("wu-6", "Wu et al., figure 6: bandwidth of packing a sub-matrix (V) and a triangle (T)"),
		shown: byteRate,
		curves: []curve{
			{name: "V, targeted", layouts: v, by: byTargeted},
			{name: "V, units", layouts: v, by: byUnits},
			{name: "T, units", layouts: t, by: byUnits},
			{name: "T in steps of 256, units", layouts: "^wu/stairs/.*nb=256$", by: byUnits},
			{name: "contiguous copy of V's bytes", layouts: v, dashed: true},
		},
	}, {
		axes:  matrixAxes("wu-7", "Wu et al., figure 7: packing and unpacking a sub-matrix (V) and a triangle (T)"),
		shown: bothTimes, roundTrip: true, hosts: true, memory: []string{ToDevice, ToCopied, ToPinned},
		curves: []curve{
			{name: "V, kernel", layouts: v, by: byTargeted, memory: ToDevice},
			{name: "V, and copied to the host", layouts: v, by: byTargeted, memory: ToCopied},
			{name: "V, zero copy", layouts: v, by: byTargeted, memory: ToPinned},
			{name: "T, units cut before the kernel", layouts: t, by: byUnitsAhead, memory: ToDevice},
			{name: "T, units cut meanwhile", layouts: t, by: byNewUnits, memory: ToDevice},
			{name: "T, cached units", layouts: t, by: byUnits, memory: ToDevice},
			{name: "T, and copied to the host", layouts: t, by: byUnits, memory: ToCopied},
			{name: "T, zero copy", layouts: t, by: byUnits, memory: ToPinned},
		},
	}, {
		axes: axes{"wu-8",
			"Wu et al., figure 8: packing 8000 blocks, a kernel against the driver's 2-D copy",
			"wu", "block", "block size (bytes)"},
		memory: []string{ToDevice, ToCopied, ToPinned},
		curves: slices.Concat(
			pairIn(ToDevice, "to the device", "^wu/vector/blocks=8000,", byTargeted),
			pairIn(ToCopied, "copied to the host", "^wu/vector/blocks=8000,", byTargeted),
			pairIn(ToPinned, "to the host", "^wu/vector/blocks=8000,", byTargeted),
		),
	},
		wuBlocks("wu-13", "13: packing a sub-matrix (V)", "V", byTargeted),
		wuBlocks("wu-14", "14: packing a triangle (T)", "T", byUnits),
	}
}

// wuBlocks is bandwidth over the number of thread blocks.
func wuBlocks(name, what, layout string, by contender) *figure {
	f := &figure{axes: axes{name, "Wu et al., figure " + what + " by few thread blocks", "wu", overBlocks, "thread blocks"},
		shown: byteRate, blocks: upTo528()}
	for _, n := range []string{"1024", "2048", "3072", "4096"} {
		f.curves = append(f.curves, curve{name: "n=" + n, layouts: "^wu/" + layout + "/n=" + n + "$", by: by})
	}
	return f
}

// jenkinsFigures are of Jenkins et al., TPDS 2014, who pack into pinned host memory.
func jenkinsFigures() []*figure {
	return []*figure{{
		axes: bytesAxes("jenkins-4",
			"jenkins", "Jenkins et al., figure 4: packing, the type tree against the driver's copies"),
		memory: []string{ToPinned},
		curves: slices.Concat(
			pair("vector, 8 B", "^jenkins/vector-512/.*,block=8$", byTree),
			[]curve{{name: "vector, 8 B, targeted", layouts: "^jenkins/vector-512/.*,block=8$", by: byTargeted}},
			pair("vector, 128 B", "^jenkins/vector-512/.*,block=128$", byTree),
			[]curve{{name: "vector, 128 B, a primitive per thread", layouts: "^jenkins/vector-512/.*,block=128$", by: byPrimitives}},
			pair("subarray", "^jenkins/subarray-4d/", byTree),
			pair("irregular indexed, 8 B", "^jenkins/indexed-irregular/", byTree),
			pair("irregular indexed_block, 8 B", "^jenkins/idxblock-irregular/", byTree),
			pair("struct", "^jenkins/struct/", byTree),
			[]curve{{name: "contiguous", layouts: "^jenkins/vector-512/.*,block=8$", dashed: true}},
		),
	}, {
		axes: axes{"jenkins-5",
			"Jenkins et al., figure 5: packing 8192 blocks, the type tree against the driver's 2-D copy",
			"jenkins", "block", "block length (bytes)"},
		memory: []string{ToPinned},
		curves: pair("vector", "^jenkins/vector/", byTree),
	}, {
		axes:   axes{"jenkins-table-4", "Jenkins et al., table 4: packing analysis data of HACC", "hacc", "cells", "cells"},
		memory: []string{ToPinned},
		curves: pair("block of a tessellation", "^hacc/vblock/", byTree),
	}}
}

// handFigures are of HAND, ICPP 2014.
func handFigures() []*figure {
	const (
		counts    = "^hand/indexed_block/.*,block=4$"
		lengths   = "^hand/indexed_block/blocks=32,"
		irregular = "^hand/indexed_block/.*,block=32$"
	)
	extents := func(name, which, what string) *figure {
		layouts := "^hand/subarray-4d-" + which + "/"
		return &figure{
			axes: axes{name, "HAND, figure " + what, "hand", "extent", which + "most extent"},
			curves: append(pair("subarray", layouts, byTargeted),
				curve{name: "a thread loops innermost (LoopT)", layouts: layouts, by: byInner},
				curve{name: "a thread loops outermost (LoopX)", layouts: layouts, by: byOuter},
				curve{name: "tree", layouts: layouts, by: byTree}),
		}
	}
	return []*figure{{
		axes: axes{"hand-4",
			"HAND, figure 4: packing an hvector of 32 blocks", "hand", "block", "block length (bytes)"},
		curves: append(pair("hvector", "^hand/hvector/", byTargeted),
			curve{name: "32 threads per block (static 2-D)", layouts: "^hand/hvector/", by: byStatic2D},
			curve{name: "one thread per block (1-D)", layouts: "^hand/hvector/", by: byInner}),
	},
		extents("hand-5a", "inner", "5 (a): packing 4-D subarrays, 8 x 8 x 8 x T/2"),
		extents("hand-5b", "outer", "5 (b): packing 4-D subarrays, X/2 x 8 x 8 x 8"), {
			axes: bytesAxes("hand-6", "hand", "HAND, figure 6: packing an indexed_block"),
			curves: slices.Concat(
				pair("blocks of 4 B", counts, byTargeted),
				[]curve{{name: "blocks of 4 B, transform", layouts: counts, by: byVectors},
					{name: "blocks of 4 B, a launch per vector", layouts: counts, by: byLaunches}},
				pair("32 blocks", lengths, byTargeted),
				[]curve{{name: "32 blocks, transform", layouts: lengths, by: byVectors}},
			),
		}, {
			axes:   bytesAxes("hand-7", "hand", "HAND, figure 7: location of the list of blocks"),
			curves: slices.Concat(lists("blocks of 4 B", counts), lists("32 blocks", lengths)),
		}, {
			axes: axes{"hand-8",
				"HAND, figure 8: adaptive and fixed sizes of thread blocks",
				"hand", "blocks", "blocks of 32 bytes"},
			curves: []curve{
				{name: "adaptive", layouts: irregular, by: byBypass},
				{name: "32 threads along a block", layouts: irregular, by: byStatic},
			},
		}, {
			axes: axes{"hand-9",
				"HAND, figure 9: methods of summing the lengths of blocks", "hand", "blocks", "blocks of 4 bytes"},
			curves: []curve{
				{name: "sequential scan", layouts: counts, by: bySequential},
				{name: "parallel scan", layouts: counts, by: byParallel},
			},
		}}
}

// lists returns the curves of figure 7 of HAND.
func lists(name, layouts string) []curve {
	return []curve{
		{name: name + ", list on the device", layouts: layouts, by: byBypass},
		{name: name + ", list copied each time", layouts: layouts, by: byCopiedList},
		{name: name + ", list pinned", layouts: layouts, by: byPinnedList},
		{name: name + ", copies", layouts: layouts, by: byCopies, dashed: true},
	}
}

// pair returns the curves of an engine and, dashed, of the driver's copies.
func pair(name, layouts string, by contender) []curve { return pairIn("", name, layouts, by) }

// pairIn is pair for packed bytes in a memory.
func pairIn(memory, name, layouts string, by contender) []curve {
	return []curve{
		{name: fmt.Sprintf("%s, %v", name, by), layouts: layouts, by: by, memory: memory},
		{name: name + ", copies", layouts: layouts, by: byCopies, memory: memory, dashed: true, sameColor: true},
	}
}

// pingFigures are those of Wu et al., HPDC 2016, of Jenkins et al., TPDS 2014, who pack into pinned host memory, and of
// HAND, ICPP 2014.
func pingFigures() []*figure {
	matrices := []curve{{name: "V", layouts: "^wu/V/"}, {name: "T", layouts: "^wu/T/"}}
	return []*figure{{
		axes:  matrixAxes("wu-9", "Wu et al., figure 9: link rate of a sub-matrix (V) and a triangle (T)"),
		shown: linkShare, curves: matrices,
	}, {
		axes:  matrixAxes("wu-10", "Wu et al., figure 10: ping-pong with a sub-matrix (V) and a triangle (T)"),
		shown: oneWayTime, curves: matrices, contiguous: "contiguous message of V's bytes",
	}, {
		axes:  matrixAxes("wu-11", "Wu et al., figure 11: ping-pong, a vector there and one piece here"),
		shown: oneWayTime, curves: []curve{{layouts: "^wu/V-contiguous/"}}, contiguous: "contiguous message",
	}, {
		axes:  matrixAxes("wu-12", "Wu et al., figure 12: ping-pong with a matrix and its transpose"),
		shown: oneWayTime, curves: []curve{{layouts: "^wu/transpose/"}}, contiguous: "contiguous message",
	}, {
		axes: bytesAxes("jenkins-6",
			"jenkins", "Jenkins et al., figure 6: ping-pong with vectors, kernels against the driver's 2-D copy"),
		shown: oneWayTime,
		curves: []curve{
			{name: "8 B", layouts: "^jenkins/vector-512/.*,block=8$"},
			{name: "32 B", layouts: "^jenkins/vector-512/.*,block=32$"},
			{name: "128 B", layouts: "^jenkins/vector-512/.*,block=128$"},
		},
		contiguous: "contiguous message",
		paths:      []string{string(p2p.Staged)},
		by:         []contender{byTargeted, byTree, byCopies},
	}, {
		axes: axes{"wu-13-link", "Wu et al., figures 13 and 14: ping-pong by few thread blocks",
			"wu", overBlocks, "thread blocks"},
		shown: linkShare, blocks: upTo528(), paths: []string{string(p2p.Peer)},
		curves: []curve{{name: "V", layouts: "^wu/V/n=4096$"}, {name: "T", layouts: "^wu/T/n=4096$"}},
	}, {
		axes: axes{"wu-15", "Wu et al., figure 15: ping-pong with a sub-matrix while GPUs are busy",
			"wu", overBusy, "share of both GPUs that another kernel keeps busy"},
		shown: oneWayTime, busy: []float64{0, 0.25, 0.5, 0.75},
		curves: []curve{{name: "n=1024", layouts: "^wu/V/n=1024$"}, {name: "n=2048", layouts: "^wu/V/n=2048$"}},
	}, {
		axes:  bytesAxes("hand-12", "ddtbench", "HAND, figure 12: ping-pong with layouts of applications"),
		shown: oneWayTime,
		curves: []curve{{name: "NAS_MG_y", layouts: "/NAS_MG_y/"}, {name: "SPECFEM3D_oc", layouts: "/SPECFEM3D_oc/"},
			{name: "SPECFEM3D_cm", layouts: "/SPECFEM3D_cm/"}, {name: "WRF_y_sa", layouts: "/WRF_y_sa/"},
			{name: "MILC_su3_zd", layouts: "/MILC_su3_zd/"}},
		paths: []string{string(p2p.Peer)},
		by:    []contender{{engine: packing.Auto}, byLaunches, byCopies},
	}}
}
