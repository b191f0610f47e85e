package datatypes

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/halox/halox/halo/packing"
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

func (c *packCurve) shows(workload string) bool {
	return regexp.MustCompile(c.layouts).MatchString(workload)
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
	c := plot.Curves{Title: fmt.Sprintf("%s\n%s, %s", f.title, firstDevice(p), packedInto(p)), XLabel: f.xLabel, YLabel: what, BytesX: f.x == PackedBytes}
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

// following returns the group of unpacking that follows one of packing; it is
// empty where there is none.
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
	bytes, _ := g.Rows[0].Float(PackedBytes)
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
