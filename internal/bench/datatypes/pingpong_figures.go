package datatypes

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"text/tabwriter"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// pingFigure is a plot of what halox bench pingpong measures: a curve for each of its
// sets of layouts and each channel.
type pingFigure struct {
	axes
	shown      quantity
	layouts    []layoutSet
	contiguous string   // what the contiguous messages of the first set are called; "" for none
	paths      []string // those of its paper, nil for the flags'
	engines    []string // its own, nil for the flags'
}

func (f *pingFigure) head() *axes { return &f.axes }

// layoutSet is layouts that make a curve.
type layoutSet struct{ name, match string }

// quantity is what a figure shows of a row.
type quantity struct {
	label string
	of    func(r results.Row) float64
}

var (
	oneWayTime = quantity{"time of one way (us)", func(r results.Row) float64 { return r.Median(results.Time) }}
	oneWayRate = quantity{"packed bytes over time (GB/s)",
		func(r results.Row) float64 { return r.Median(results.Rate) }}
	linkShare = quantity{"bandwidth (% of a contiguous message's)",
		func(r results.Row) float64 { return 100 * r.Median(results.Share) }}
)

// pingFigures returns those of the papers, Wu et al., HPDC 2016, and Jenkins et al.,
// TPDS 2014, who pack into pinned host memory.
func pingFigures() []*pingFigure {
	matrices := []layoutSet{{"V", "^wu/V/"}, {"T", "^wu/T/"}}
	return []*pingFigure{{
		axes:  matrixAxes("wu-9", "Wu et al., figure 9: what a sub-matrix (V) and a triangle (T) get of the link"),
		shown: linkShare, layouts: matrices,
	}, {
		axes:  matrixAxes("wu-10", "Wu et al., figure 10: ping-pong with a sub-matrix (V) and a triangle (T)"),
		shown: oneWayTime, layouts: matrices, contiguous: "contiguous message of V's bytes",
	}, {
		axes:  matrixAxes("wu-11", "Wu et al., figure 11: ping-pong, a vector there and one piece here"),
		shown: oneWayTime, layouts: []layoutSet{{"", "^wu/V-contiguous/"}}, contiguous: "contiguous message",
	}, {
		axes:  matrixAxes("wu-12", "Wu et al., figure 12: ping-pong with a matrix and its transpose"),
		shown: oneWayTime, layouts: []layoutSet{{"", "^wu/transpose/"}}, contiguous: "contiguous message",
	}, {
		axes: bytesAxes("jenkins-6",
			"jenkins", "Jenkins et al., figure 6: ping-pong with vectors, kernels against the driver's 2-D copy"),
		shown: oneWayTime,
		layouts: []layoutSet{
			{"8 B", "^jenkins/vector-512/.*,block=8$"},
			{"32 B", "^jenkins/vector-512/.*,block=32$"},
			{"128 B", "^jenkins/vector-512/.*,block=128$"},
		},
		contiguous: "contiguous message",
		paths:      []string{string(p2p.Staged)},
		engines:    []string{string(packing.Targeted), string(packing.Tree), string(packing.Copies)},
	}}
}

// generalPingFigure is bandwidth over packed size, or another parameter, a curve a channel.
func generalPingFigure(a axes) *pingFigure {
	return &pingFigure{axes: a, shown: oneWayRate, layouts: []layoutSet{{}}, contiguous: "contiguous message"}
}

// shows reports whether a curve is of the workload.
func (f *pingFigure) shows(workload string) bool {
	return slices.ContainsFunc(f.layouts, func(s layoutSet) bool { return s.has(workload) })
}

func (s *layoutSet) has(workload string) bool {
	return regexp.MustCompile(s.match).MatchString(workload)
}

// carrier is a channel as the rows of a record name it.
type carrier struct{ name, path, engine string }

// carriers returns those of a record, in the order of its rows.
func carriers(r *results.Record) (all []carrier) {
	for _, row := range r.Rows {
		if c := (carrier{row.Contender(), row.Text("path"), row.Text("engine")}); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// draw returns the figure of what was measured, without curves that have no point. The
// driver's copies are dashed, beside an engine over the same path.
func (f *pingFigure) draw(p *results.Record) plot.Curves {
	c := plot.Curves{Title: f.title + "\n" + p.Between(), XLabel: f.xLabel, YLabel: f.shown.label,
		BytesX: f.x == packedBytes}
	if len(p.Rows) > 0 && p.Rows[0].Limits() != "" {
		c.Title += ", " + p.Rows[0].Limits()
	}
	groups, all := p.Groups(), carriers(p)
	for _, set := range f.layouts {
		for i, l := range all {
			copied := l.engine == string(packing.Copies) && i > 0 && all[i-1].path == l.path
			c.Curves = append(c.Curves,
				f.curve(groups, set, l).draw(plot.Curve{Name: set.join(l), Dashed: copied, Twin: copied}))
		}
	}
	if f.contiguous != "" {
		c.Curves = append(c.Curves, f.plain(groups).draw(plot.Curve{Name: f.contiguous, Dashed: true}))
	}
	c.Curves = withPoints(c.Curves)
	return c
}

// join names a curve.
func (s *layoutSet) join(l carrier) string {
	if s.name == "" {
		return l.name
	}
	return s.name + ", " + l.name
}

// curve gathers what some layouts took by a channel.
func (f *pingFigure) curve(groups []results.Group, s layoutSet, l carrier) medians {
	m := medians{}
	for _, g := range groups {
		if row, ok := g.Of(l.name); ok && s.has(row.Workload()) {
			m.add(&f.axes, row, f.shown.of(row))
		}
	}
	return m
}

// plain gathers what the contiguous messages took of as many bytes as the first layouts
// have.
func (f *pingFigure) plain(groups []results.Group) medians {
	m := medians{}
	for _, g := range groups {
		first := g.Rows[0]
		if plain, ok := first.Get(results.CopyTime); ok && f.layouts[0].has(first.Workload()) {
			bytes, _ := first.Float(packedBytes)
			m.add(&f.axes, first, f.shown.of(results.NewRow().Transfer(int64(bytes), plain, plain)))
		}
	}
	return m
}

// Figure is a figure of a paper, drawn of a record of one kind.
type Figure struct {
	Name, Title string
	Of          results.Kind
	Draw        func(r *results.Record) plot.Curves
}

// Figures returns those of packing, and then those of ping-pongs.
func Figures() (all []Figure) {
	for _, f := range packFigures() {
		all = append(all, Figure{f.name, f.title, results.KindPack, f.draw})
	}
	for _, f := range pingFigures() {
		all = append(all, Figure{f.name, f.title, results.KindPingPong, f.draw})
	}
	return all
}

// list prints the figures of a kind of record, or the layouts, if that was asked for.
func (l *layouts) list(w io.Writer, kind results.Kind, chosen func() ([]workloads.Workload, error)) (bool, error) {
	if l.Figure == "list" {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, f := range Figures() {
			if f.Of == kind {
				fmt.Fprintf(t, "%s\t%s\n", f.Name, f.Title)
			}
		}
		return true, t.Flush()
	}
	if !l.Listed {
		return false, nil
	}
	all, err := chosen()
	for _, one := range all {
		fmt.Fprintln(w, one, one.Bytes)
	}
	return true, err
}
