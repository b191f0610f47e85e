package plot

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// form is the form of a plot.
type form int

const (
	asCurves form = iota
	asBars
	asMatrix
	asScaling
	asHistory
	asMeasures
	asRoofline
)

// kind is a kind of plot of records: the label along X, the metric along Y, and the labels that distinguish
// curves.
type kind struct {
	name, about, title string
	of                 results.Kind // the first entry for a kind of record is its default
	form               form
	x                  []string         // the first that varies, otherwise the first that rows have
	y                  []results.Metric // the first that rows have
	by                 []string         // of these, the labels that vary name the curves
	hold               []results.Label  // labels restricted to one value: this one, the greatest or the first
	linearY            bool
	ceiling            bool // also draw the bound of Y
	asked              bool // by is that of the options
}

// greatest, as the value of a restricted label, is the greatest number that rows have.
type greatest struct{}

// kinds returns the table of all kinds. The first match for a record is used.
func kinds() []kind {
	machine := []string{"devices", "precision", "grid"}
	scheme := []string{"scheme", "order", "path"}
	held := func(names ...string) (all []results.Label) {
		for _, n := range names {
			all = append(all, results.Label{Name: n})
		}
		return all
	}
	return []kind{{
		name: "updates", about: "runs: throughput, by number of devices and scheme",
		title: "Throughput", of: results.KindRun, form: asBars,
		x: []string{"devices", "scheme"}, y: []results.Metric{results.Updates},
		by: append(scheme, "precision", "grid", "solver"),
	}, {
		name: "history", about: "runs with a history: the change in a step, over the steps",
		title: "Change of the field in a step", form: asHistory,
	}, {
		name: "measures", about: "runs with a history and measures: each measured number, over the time or the steps",
		title: "Measures", form: asMeasures,
	}, {
		name: "exchange", about: "bench exchange: time over the largest message, by path", title: "Halo exchange",
		of: results.KindExchange,
		x:  []string{"message_bytes", "points"}, y: []results.Metric{results.Time},
		by: append([]string{"path"}, machine...), hold: held("radius", "fields"), ceiling: true,
	}, {
		name: "pack", about: "bench pack: rate over packed bytes, by engine", title: "Packing", of: results.KindPack,
		x: []string{"bytes"}, y: []results.Metric{results.Rate},
		by:   []string{"engine", "variant", "memory", "thread_blocks"},
		hold: []results.Label{{Name: "direction", Value: results.Packed}}, ceiling: true,
	}, {
		name: "pingpong", about: "bench pingpong: rate over packed bytes, by path", title: "Ping-pong",
		of: results.KindPingPong,
		x:  []string{"bytes"}, y: []results.Metric{results.Rate},
		by: []string{"path", "remote", "engine", "link", "fragment", "ring", "thread_blocks", "busy"}, ceiling: true,
	}, {
		name: "links", about: "bench links: rate over bytes, by path and link", title: "Rates of links",
		of: results.KindLinks,
		x:  []string{"bytes"}, y: []results.Metric{results.Rate}, by: []string{"path", "link"},
		hold: []results.Label{{Name: "mode", Value: "one-way"}},
	}, {
		name: "matrix", about: "bench links: highest rate from each device to each other, one map per path",
		title: "Highest rate from device to device", form: asMatrix,
		y: []results.Metric{results.Rate, results.Time}, by: []string{"path"},
		hold: []results.Label{{Name: "mode", Value: "one-way"}},
	}, {
		name: "latency", about: "bench latency: times of launches, events, flags and small messages", title: "Latency",
		of: results.KindLatency, form: asBars,
		x: []string{"what", "path", "scheme"}, y: []results.Metric{results.Latency, results.Time},
		by: append([]string{"path", "link"}, machine...),
	}, {
		name: "ranks", about: "bench ranks: latency, rate or hidden share over bytes", title: "Ranks",
		of: results.KindRanks,
		x:  []string{"bytes", "per_multiprocessor"}, y: []results.Metric{results.Latency, results.Rate, results.Hidden},
		by: []string{"what", "devices", "ranks", "per_multiprocessor", "computing", "staggered"},
	}, {
		name:  "overlap",
		about: "bench ranks --what overlap: hidden share over ranks per multiprocessor, by load",
		title: "Hidden share", of: results.KindRanks,
		x: []string{"per_multiprocessor"}, y: []results.Metric{results.Hidden},
		by: []string{"computing", "multiprocessor_bytes", "multiprocessor_work", "staggered"}, linearY: true,
	}, {
		name: "schemes", about: "bench schemes: GFLOP/s or throughput over size, by scheme and path", title: "Schemes",
		of: results.KindSchemes,
		x:  []string{"points", "grid"}, y: []results.Metric{results.GFLOPS, results.Updates, results.Step},
		by:   append(scheme, "devices", "precision", "stencil", "norms", "sums"),
		hold: []results.Label{{Name: "devices", Value: greatest{}}, {Name: "precision"}},
	}, {
		name: "scaling", about: "bench scaling: speed-up and efficiency over devices, with the ideal", title: "scaling",
		of: results.KindScaling, form: asScaling,
		x: []string{"devices"}, by: append(scheme, "points", "grid", "precision", "stencil"),
		hold: append(held("precision", "mode"), results.Label{Name: "points", Value: greatest{}}),
	}, {
		name: "sweep", about: "bench sweep: share of the copy rate over size, by stencil",
		title: "Sweeps on one device", of: results.KindSweep,
		x: []string{"points", "grid"}, y: []results.Metric{results.Share, results.GFLOPS, results.Rate},
		by: []string{"stencil", "kernel", "radius", "precision", "norms", "sums"}, linearY: true, hold: held("norms", "sums"),
	}, {
		name:  "roofline",
		about: "bench sweep: GFLOP/s over operations per byte, bounded by the copy rate and --peak",
		title: "Roofline", form: asRoofline,
		by: []string{"stencil", "precision", "norms", "sums"}, hold: held("norms", "sums"),
	}, {
		name: "checkpoint", about: "bench checkpoint: rate of writing and reading, by number of points",
		title: "Checkpoints", of: results.KindCheckpoint, form: asBars,
		x: []string{"points"}, y: []results.Metric{results.Rate, results.Slowdown},
		by: append([]string{"what", "compress"}, machine...),
	}, {
		name: "slowdown", about: "bench checkpoint: slowdown of steps, by scheme", title: "Steps with checkpoints or statistics",
		of: results.KindCheckpoint, form: asBars, x: []string{"points", "every", "scheme"},
		y:  []results.Metric{results.Slowdown},
		by: append([]string{"what", "scheme", "steps_per_exchange", "every", "compress"}, machine...),
	}, {
		name: "forecast", about: "plan --hosts: predicted efficiency over hosts, by network",
		title: "Predicted efficiency", of: results.KindForecast,
		x: []string{"hosts"}, y: []results.Metric{results.Efficiency, results.Step}, by: []string{"network", "mode"},
		linearY: true,
	}, {
		name: "curves", about: "any rows: --y over --x, by --by", form: asCurves,
	}, {
		name: "bars", about: "any rows: bars of --y for each --x, by --by", form: asBars,
	}}
}

// Kinds returns the names of the kinds that New knows, each with what it shows.
func Kinds() iter.Seq2[string, string] {
	return func(yield func(name, about string) bool) {
		for _, k := range kinds() {
			if !yield(k.name, k.about) {
				return
			}
		}
	}
}

// findKind returns the kind with a name, or for "" the one for all of the records.
func findKind(name string, all []results.Source) (kind, error) {
	kinds := kinds()
	var names []string
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
		names = append(names, k.name)
	}
	if name != "" {
		return kind{}, fmt.Errorf("the plot must be one of %s, got %q", strings.Join(names, ", "), name)
	}
	for _, s := range all {
		if s.Kind != all[0].Kind {
			return kind{}, fmt.Errorf(
				"%s has kind %s and %s has kind %s: choose a plot, or draw them one by one", all[0].Name,
				wording.Short(string(all[0].Kind)), s.Name, wording.Short(string(s.Kind)),
			)
		}
	}
	if !slices.ContainsFunc(all, func(s results.Source) bool { return s.Run == nil || len(s.Run.History) == 0 }) {
		if !slices.ContainsFunc(all, func(s results.Source) bool { return s.Run.History[0].Measures == nil }) {
			return findKind("measures", all)
		}
		return findKind("history", all)
	}
	for _, k := range kinds {
		if k.of == all[0].Kind {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("records of kind %q have no default plot: choose curves or bars, and X and Y",
		wording.Short(string(all[0].Kind)),
	)
}
