package results

import (
	"fmt"
	"slices"
	"strings"
)

// form is how a plot shows its rows.
type form int

const (
	asCurves form = iota
	asBars
	asMatrix
	asScaling
	asHistory
)

// plotKind is a way to plot records: which label lies along X, which metric along Y,
// and which labels tell curves apart.
type plotKind struct {
	name, about, title string
	of                 Kind // it is the first choice for the first of those with that kind
	form               form
	x                  []string // the first that varies, else the first that there is
	y                  []Metric // the first that there is
	by                 []string // those that vary name the curves
	hold               []Label  // what varies beside is held at one value: this, the greatest or the first one
	linearY            bool
	ceiling            bool // draw what bounds Y too
}

// greatest stands for the greatest number that a label has.
type greatest struct{}

// plotKinds is the table of them.
func plotKinds() []plotKind {
	machine := []string{"devices", "precision", "grid"}
	scheme := []string{"scheme", "order", "path"}
	held := func(names ...string) (all []Label) {
		for _, n := range names {
			all = append(all, Label{Name: n})
		}
		return all
	}
	return []plotKind{{
		name: "updates", about: "runs: updated points a second, by number of devices and scheme", title: "Updated points a second", of: KindRun, form: asBars,
		x: []string{"devices", "scheme"}, y: []Metric{Updates}, by: append(scheme, "precision", "grid", "solver"),
	}, {
		name: "history", about: "runs with a history: the change a step, over the steps", title: "Change of the field in a step", form: asHistory,
	}, {
		name: "exchange", about: "bench exchange: time over the largest message, by path", title: "Halo exchange", of: KindExchange,
		x: []string{"message_bytes", "points"}, y: []Metric{Time}, by: append([]string{"path"}, machine...), hold: held("radius", "fields"), ceiling: true,
	}, {
		name: "pack", about: "bench pack: rate over packed bytes, by engine", title: "Packing", of: KindPack,
		x: []string{"bytes"}, y: []Metric{Rate}, by: []string{"engine", "variant", "memory", "thread_blocks"}, hold: []Label{{"direction", Packed}}, ceiling: true,
	}, {
		name: "pingpong", about: "bench pingpong: rate over packed bytes, by path", title: "Ping-pong", of: KindPingPong,
		x: []string{"bytes"}, y: []Metric{Rate}, by: []string{"path", "remote", "engine", "link", "fragment", "ring", "thread_blocks", "busy"}, ceiling: true,
	}, {
		name: "links", about: "bench links: rate over bytes, by path and link", title: "What the links carry", of: KindLinks,
		x: []string{"bytes"}, y: []Metric{Rate}, by: []string{"path", "link"}, hold: []Label{{"mode", "one-way"}},
	}, {
		name: "matrix", about: "bench links: the highest rate from each device to each other, a map a path", title: "Highest rate from device to device", form: asMatrix,
		y: []Metric{Rate, Time}, by: []string{"path"}, hold: []Label{{"mode", "one-way"}},
	}, {
		name: "latency", about: "bench latency: times of the smallest pieces of work", title: "Latency", of: KindLatency, form: asBars,
		x: []string{"what", "path", "scheme"}, y: []Metric{Latency, Time}, by: append([]string{"path", "link"}, machine...),
	}, {
		name: "schemes", about: "GFLOP/s, or updates a second, over size, by scheme and path", title: "Schemes", of: KindSchemes,
		x: []string{"points", "grid"}, y: []Metric{GFLOPS, Updates, Step}, by: append(scheme, "devices", "precision", "stencil", "norms"), linearY: true,
		hold: []Label{{Name: "devices", Value: greatest{}}, {Name: "precision"}},
	}, {
		name: "scaling", about: "speed-up and efficiency over the number of devices, with the ideal", title: "Scaling", of: KindScaling, form: asScaling,
		x: []string{"devices"}, by: append(scheme, "points", "grid", "precision", "mode"), hold: held("precision"),
	}, {
		name: "sweep", about: "bench sweep: share of the copy rate over size, by stencil", title: "Sweeps on one device", of: KindSweep,
		x: []string{"points", "grid"}, y: []Metric{Share, GFLOPS, Rate}, by: []string{"stencil", "kernel", "radius", "precision", "norms"}, linearY: true,
	}, {
		name: "curves", about: "any rows: --y over --x, by --by", form: asCurves,
	}, {
		name: "bars", about: "any rows: bars of --y for each --x, by --by", form: asBars,
	}}
}

// A PlotKind is one that [Plot] draws.
type PlotKind struct{ Name, About string }

// PlotKinds returns those that Plot draws.
func PlotKinds() (all []PlotKind) {
	for _, k := range plotKinds() {
		all = append(all, PlotKind{k.name, k.about})
	}
	return all
}

// findPlotKind returns the kind of that name, or for "" the one that fits all of the
// records.
func findPlotKind(name string, all []Source) (plotKind, error) {
	kinds := plotKinds()
	var names []string
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
		names = append(names, k.name)
	}
	if name != "" {
		return plotKind{}, fmt.Errorf("there is no plot %q: take %s", name, strings.Join(names, ", "))
	}
	for _, s := range all {
		if s.Kind != all[0].Kind {
			return plotKind{}, fmt.Errorf("%s is of %s and %s of %s: say which plot, or draw them one by one", all[0].Name, all[0].Kind, s.Name, s.Kind)
		}
	}
	if !slices.ContainsFunc(all, func(s Source) bool { return s.Run == nil || len(s.Run.History) == 0 }) {
		return findPlotKind("history", all)
	}
	for _, k := range kinds {
		if k.of == all[0].Kind {
			return k, nil
		}
	}
	return plotKind{}, fmt.Errorf("records of kind %q have no plot of their own: take curves or bars, and say what lies along X and Y", all[0].Kind)
}
