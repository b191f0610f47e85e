package plot

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// form is how a plot shows its rows.
type form int

const (
	asCurves form = iota
	asBars
	asMatrix
	asScaling
	asHistory
	asRoofline
)

// kind is a way to plot records: which label lies along X, which metric along Y,
// and which labels tell curves apart.
type kind struct {
	name, about, title string
	of                 results.Kind // the first entry with the kind of a record is its default
	form               form
	x                  []string         // the first that varies, else the first that rows have
	y                  []results.Metric // the first that rows have
	by                 []string         // of these, the labels that vary name the curves
	hold               []results.Label  // labels held at one value: this one, the greatest or the first
	linearY            bool
	ceiling            bool // draw what bounds Y too
}

// greatest, as the value of a held label, is the greatest number that rows have.
type greatest struct{}

// kinds returns the table of all kinds. Of two that suit a record the first is taken.
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
		name: "updates", about: "runs: updated points a second, by number of devices and scheme",
		title: "Updated points a second", of: results.KindRun, form: asBars,
		x: []string{"devices", "scheme"}, y: []results.Metric{results.Updates},
		by: append(scheme, "precision", "grid", "solver"),
	}, {
		name: "history", about: "runs with a history: the change a step, over the steps",
		title: "Change of the field in a step", form: asHistory,
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
		name: "links", about: "bench links: rate over bytes, by path and link", title: "What the links carry",
		of: results.KindLinks,
		x:  []string{"bytes"}, y: []results.Metric{results.Rate}, by: []string{"path", "link"},
		hold: []results.Label{{Name: "mode", Value: "one-way"}},
	}, {
		name: "matrix", about: "bench links: the highest rate from each device to each other, a map a path",
		title: "Highest rate from device to device", form: asMatrix,
		y: []results.Metric{results.Rate, results.Time}, by: []string{"path"},
		hold: []results.Label{{Name: "mode", Value: "one-way"}},
	}, {
		name: "latency", about: "bench latency: times of the smallest pieces of work", title: "Latency",
		of: results.KindLatency, form: asBars,
		x: []string{"what", "path", "scheme"}, y: []results.Metric{results.Latency, results.Time},
		by: append([]string{"path", "link"}, machine...),
	}, {
		name: "ranks", about: "bench ranks: latency, rate or hidden share over bytes", title: "Ranks",
		of: results.KindRanks,
		x:  []string{"bytes", "per_multiprocessor"}, y: []results.Metric{results.Latency, results.Rate, results.Hidden},
		by: []string{"what", "devices", "ranks", "per_multiprocessor", "computing", "apart"},
	}, {
		name:  "overlap",
		about: "bench ranks --what overlap: hidden share over ranks per multiprocessor, by what they do",
		title: "Hidden share", of: results.KindRanks,
		x: []string{"per_multiprocessor"}, y: []results.Metric{results.Hidden},
		by: []string{"computing", "multiprocessor_bytes", "multiprocessor_work", "apart"}, linearY: true,
	}, {
		name: "schemes", about: "GFLOP/s, or updates a second, over size, by scheme and path", title: "Schemes",
		of: results.KindSchemes,
		x:  []string{"points", "grid"}, y: []results.Metric{results.GFLOPS, results.Updates, results.Step},
		by: append(scheme, "devices", "precision", "stencil", "norms", "sums"), linearY: true,
		hold: []results.Label{{Name: "devices", Value: greatest{}}, {Name: "precision"}},
	}, {
		name: "scaling", about: "speed-up and efficiency over the number of devices, with the ideal", title: "Scaling",
		of: results.KindScaling, form: asScaling,
		x: []string{"devices"}, by: append(scheme, "points", "grid", "precision", "mode"), hold: held("precision"),
	}, {
		name: "sweep", about: "bench sweep: share of the copy rate over size, by stencil",
		title: "Sweeps on one device", of: results.KindSweep,
		x: []string{"points", "grid"}, y: []results.Metric{results.Share, results.GFLOPS, results.Rate},
		by: []string{"stencil", "kernel", "radius", "precision", "norms", "sums"}, linearY: true,
	}, {
		name:  "roofline",
		about: "bench sweep: operations a second over operations a byte, below the copy's rate and --peak",
		title: "Roofline", form: asRoofline,
		by: []string{"stencil", "precision", "norms", "sums"}, hold: held("norms", "sums"),
	}, {
		name: "forecast", about: "plan --hosts: predicted efficiency over hosts, by network",
		title: "Predicted efficiency", of: results.KindForecast,
		x: []string{"hosts"}, y: []results.Metric{results.Efficiency, results.Step}, by: []string{"mode", "network"},
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

// findKind returns the kind of that name, or for "" the one that fits all of the
// records.
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
		return kind{}, fmt.Errorf("there is no plot %q: take %s", name, strings.Join(names, ", "))
	}
	for _, s := range all {
		if s.Kind != all[0].Kind {
			return kind{}, fmt.Errorf(
				"%s is of %s and %s of %s: say which plot, or draw them one by one", all[0].Name,
				wording.Short(string(all[0].Kind)), s.Name, wording.Short(string(s.Kind)),
			)
		}
	}
	if !slices.ContainsFunc(all, func(s results.Source) bool { return s.Run == nil || len(s.Run.History) == 0 }) {
		return findKind("history", all)
	}
	for _, k := range kinds {
		if k.of == all[0].Kind {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf(
		"records of kind %q have no plot of their own: take curves or bars, and say what lies along X and Y",
		wording.Short(string(all[0].Kind)),
	)
}
