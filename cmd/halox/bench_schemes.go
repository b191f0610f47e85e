package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// schemesBench is what halox bench schemes is asked for.
type schemesBench struct {
	stepBench
	schemes, paths []string
	norms          []int
}

func newBenchSchemesCommand() *cobra.Command {
	var b schemesBench
	cmd := &cobra.Command{
		Use:   "schemes",
		Short: "Time a step of every scheme over every path, on more and more devices",
		Long: `Time a step of every scheme over every path, on more and more devices.

Solves the heat equation on cubes, or squares with --dims 2, with every scheme,
path and order, in intervals of some 20 ms. At the ends of one all devices have done
their work, so that a step is timed in a steady run; a row is the median over intervals,
until that is known to a percent or --budget is spent. GFLOP/s count 8 operations a
point (6 with --dims 2), whatever the kernels do. Beside it stands the rate of a plain
copy within a device; share is what reading and writing each point once would have of
it, on each device. A row is compared with the baseline and with the best two-stream
scheme on as many devices, and with the best of one device.

With --norms n the change of every n-th step and its norms are taken too, and the host
looks at them, as in a run with a tolerance; rows are compared with those of the same.

What a scheme, a link or the memory cannot do is left out, with a note in the record.
Ctrl-C ends the bench and keeps what it had.`,
		Example: `  halox bench schemes --record schemes.json
  halox plot schemes.json --where precision=float64 --where devices=4 -o schemes.svg
  halox bench schemes --dims 2 --schemes two-stream,assisted --paths peer --devices 4
  halox bench schemes --points 1024,1536 --precisions float64 --cut slabs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := untilInterrupted(cmd.Context())
			defer release()
			b.settings = settingsOf(cmd.Flags())
			return b.start(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	b.addFlags(f)
	f.StringSliceVar(&b.schemes, "schemes", textsOf(scheme.All()), "schemes")
	f.IntSliceVar(&b.norms, "norms", []int{0}, "take the norms of every n-th step; 0: of none")
	f.StringSliceVar(&b.paths, "paths", []string{string(p2p.Staged), string(p2p.Peer), string(p2p.Direct)}, "paths: staged, peer, direct")
	return cmd
}

func notNegative(flag string, all []int) error {
	if len(all) == 0 || slices.Min(all) < 0 {
		return fmt.Errorf("--%s: give numbers that are 0 or more", flag)
	}
	return nil
}

// textsOf returns names as plain strings.
func textsOf[T ~string](all []T) (texts []string) {
	for _, v := range all {
		texts = append(texts, string(v))
	}
	return texts
}

// start does what the flags say.
func (b *schemesBench) start(ctx context.Context, out, notes io.Writer) error {
	for _, wrong := range []error{
		eachOf("schemes", b.schemes, textsOf(scheme.All())...),
		eachOf("paths", b.paths, string(p2p.Staged), string(p2p.Peer), string(p2p.Direct)),
		notNegative("norms", b.norms), b.check(),
	} {
		if wrong != nil {
			return wrong
		}
	}
	for _, s := range b.schemes {
		if !slices.ContainsFunc(b.paths, func(path string) bool { return takes(scheme.Scheme(s), p2p.Path(path)) }) {
			fmt.Fprintf(notes, "left out on several devices: scheme %s, which takes none of --paths %s\n", s, strings.Join(b.paths, ","))
		}
	}
	return b.run(ctx, results.KindSchemes, out, notes, b.tasks, compareSchemes)
}

// tasks returns a task for each row.
func (b *schemesBench) tasks(r *stepRun) (all []task) {
	for precision, points := range b.problems() {
		for _, devices := range b.counts {
			for _, how := range b.ways(devices) {
				for _, norms := range distinct(b.norms) {
					c := stepCase{
						precision: precision, size: b.cube(points), devices: devices,
						scheme: how.scheme, order: how.order, path: how.path, norms: norms,
					}
					all = append(all, r.task(c.labels().Label("points", points), c))
				}
			}
		}
	}
	return all
}

// route is a scheme with its order and a path.
type route struct {
	way
	path p2p.Path
}

// ways returns the schemes with their orders and paths. Alone a device sends nothing, so
// that each scheme is there once.
func (b *schemesBench) ways(devices int) (all []route) {
	for _, s := range distinct(b.schemes) {
		name := scheme.Scheme(s)
		orders := needsOf(name).Orders
		if devices == 1 {
			all = append(all, route{way{name, append(orders, "")[0]}, p2p.Auto})
			continue
		}
		if len(orders) == 0 {
			orders = []scheme.Order{""}
		}
		for _, order := range orders {
			for _, path := range distinct(b.paths) {
				if takes(name, p2p.Path(path)) {
					all = append(all, route{way{name, order}, p2p.Path(path)})
				}
			}
		}
	}
	return all
}

// takes reports whether a scheme can have a path. One that has a path of its own, whatever
// else is best, has no other.
func takes(s scheme.Scheme, path p2p.Path) bool {
	own := needsOf(s).Path
	return own == "" || own == path
}

// compareSchemes adds to the rows how much faster they are than the baseline and than the
// best two-stream scheme of the same problem on as many devices, and than the best scheme
// of the same problem on one. Where these were not measured it adds nothing.
func compareSchemes(rows []results.Row) (compared []results.Row) {
	for _, row := range rows {
		problem := problemOf(row)
		devices := row.Text("devices")
		same := func(other results.Row, name scheme.Scheme) bool {
			return problemOf(other) == problem && other.Text("devices") == devices && other.Text("scheme") == string(name)
		}
		row = over(row, results.OverBaseline, best(rows, func(o results.Row) bool { return same(o, scheme.Baseline) }))
		row = over(row, results.OverTwoStream, best(rows, func(o results.Row) bool { return same(o, scheme.TwoStream) }))
		row = over(row, results.SpeedUp, best(rows, func(o results.Row) bool { return problemOf(o) == problem && o.Text("devices") == "1" }))
		compared = append(compared, row)
	}
	return compared
}

// problemOf names what is solved in a row.
func problemOf(row results.Row) [4]string {
	return [4]string{row.Text("stencil"), row.Text("points"), row.Text("precision"), row.Text("norms")}
}

// best returns the shortest step of the rows that are meant, infinite where there is none.
func best(rows []results.Row, meant func(results.Row) bool) float64 {
	shortest := math.Inf(1)
	for _, row := range rows {
		if step, ok := row.Get(results.Step); ok && meant(row) {
			shortest = min(shortest, step.Median)
		}
	}
	return shortest
}

// over adds to a row how many times as fast it is as what takes so many microseconds.
func over(row results.Row, m results.Metric, us float64) results.Row {
	step, ok := row.Get(results.Step)
	if !ok || math.IsInf(us, 1) {
		return row
	}
	return row.Value(m, step.Under(us))
}
