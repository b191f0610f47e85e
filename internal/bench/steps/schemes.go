package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// schemesOptions say which schemes make steps, and how.
type schemesOptions struct {
	common
	Schemes, Paths []string
	Norms          []int    // taken every so many steps; 0: never
	Sums           []string // how the norms are summed: see sums.Mode
	// steps between two exchanges, of schemes that take more than one, on several devices or where they exchange within
	// one
	Groups []int
}

// SchemesCommand returns halox bench schemes.
func SchemesCommand() bench.Command {
	return bench.Command{
		Name: "schemes", Short: "Time a step of every scheme over every path, on more and more devices",
		Options: &schemesOptions{common: defaults(), Schemes: option.Texts(scheme.All()),
			Paths: option.Texts(p2p.Paths()), Norms: []int{0}, Sums: []string{string(sums.Fast)}, Groups: []int{1}},
		About: `Solves the heat equation on cubes, or squares with --dims 2, with every scheme, path and order,
in intervals of some 20 ms between which all devices are idle. A row is the median over
intervals, until it is known to a percent or --budget is spent. GFLOP/s count 8 operations per
point (6 with --dims 2), whatever the kernels do. The share is that of the rate of a plain copy
within a device which reading and writing each point once would have. A row is compared with
the baseline and the best two-stream scheme on as many devices, and with the best of one device.

--norms n adds rows with the norms of every n-th step, as in a run with a tolerance. Their sums
are fast ones; --sums fast,reproducible adds the reproducible ones that a run has by default.
--exchange-steps 1,2,4,8 adds schemes that run several steps between two exchanges.

What a scheme, a link or the memory cannot do is left out, with a note in the record. Ctrl-C
keeps what was measured.`,
		Example: `  halox bench schemes --record schemes.json
  halox plot schemes.json --where precision=float64 --where devices=4 -o schemes.svg
  halox bench schemes --dims 2 --schemes two-stream,assisted --paths peer --devices 4
  halox bench schemes --points 64,128 --exchange-steps 1,2,4,8
  halox bench schemes --points 1024,1536 --precisions float64 --cut slabs`,
	}
}

// Flags returns the flags.
func (o *schemesOptions) Flags() []option.Flag {
	return append(o.common.flags(), []option.Flag{
		{Name: "schemes", Value: &o.Schemes, Help: "schemes: {}", Choices: option.Texts(scheme.All())},
		{Name: "norms", Value: &o.Norms, Help: "compute norms every so many steps; 0: never",
			To: option.NoLimit},
		option.Sums(&o.Sums, option.Texts(sums.Modes())),
		exchangeSteps(&o.Groups),
		option.Paths(&o.Paths, option.Texts(p2p.Paths())),
	}...)
}

func exchangeSteps(value *[]int) option.Flag {
	return option.Flag{Name: "exchange-steps", Value: value, From: 1, To: solvers.MaxGroup,
		Help: fmt.Sprintf("steps between two exchanges, 1 to %d", solvers.MaxGroup)}
}

// Check completes the options.
func (o *schemesOptions) Check() error {
	o.complete()
	return nil
}

// Run measures the steps of all schemes.
func (o *schemesOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	for _, s := range o.Schemes {
		if !slices.ContainsFunc(o.Paths, func(path string) bool { return takes(scheme.Scheme(s), p2p.Path(path)) }) {
			fmt.Fprintf(to.Notes, "left out on several devices: scheme %s, which takes none of --paths %s\n", s,
				strings.Join(o.Paths, ","))
		}
	}
	o.noteGroups(to.Notes)
	r, err := o.newRun(ctx, results.KindSchemes, on, to)
	if err != nil {
		return err
	}
	tasks := o.tasks(r)
	if len(tasks) == 0 {
		return errors.New("nothing could be measured: no scheme of --schemes takes these --paths and " +
			"--exchange-steps on so many devices")
	}
	failure := to.Measure(ctx, tasks)
	to.Record.Rows = compareSchemes(to.Record.Rows)
	return failure
}

// noteGroups says which schemes are left out with which steps between two exchanges.
func (o *schemesOptions) noteGroups(notes io.Writer) {
	for _, group := range o.Groups {
		for _, s := range o.Schemes {
			if group > 1 && !scheme.Scheme(s).Needs().Groups {
				fmt.Fprintf(notes, "left out on several devices: scheme %s with --exchange-steps %d: it exchanges "+
					"after each step\n", s, group)
			}
		}
	}
}

// tasks returns a task for each row.
func (o *schemesOptions) tasks(r *run) (all []bench.Task) {
	for precision, points := range o.problems() {
		for _, devices := range o.counts(r.Machine) {
			for _, how := range o.ways(devices) {
				for _, m := range o.measurements() {
					c := stepCase{
						precision: precision, size: o.cube(points), devices: devices,
						scheme: how.scheme, order: how.order, path: how.path, group: how.group, norms: m.norms,
						sums: m.sums,
					}
					all = append(all, r.task(c.labels().Label("points", points), c))
				}
			}
		}
	}
	return all
}

// measurement is how often norms are taken, and how they are summed.
type measurement struct {
	norms int
	sums  sums.Mode
}

// measurements returns one without norms, if it is wanted, and one for each way to sum those of each interval.
func (o *schemesOptions) measurements() (all []measurement) {
	for _, norms := range o.Norms {
		for _, mode := range o.Sums {
			all = append(all, measurement{norms, sums.Mode(mode)})
			if norms == 0 {
				break
			}
		}
	}
	return all
}

// way is a scheme with its order, "" for schemes without one, and a path.
type way struct {
	scheme scheme.Scheme
	order  scheme.Order
	path   p2p.Path
	group  int // steps between two exchanges
}

// ways returns the schemes with their orders, paths and steps between two exchanges. Alone a device sends nothing, so
// that each scheme is there once, or with all steps between two exchanges where it exchanges within a device.
func (o *schemesOptions) ways(devices int) (all []way) {
	for _, s := range o.Schemes {
		name := scheme.Scheme(s)
		orders := name.Needs().Orders
		if devices == 1 {
			groups := []int{1}
			if name.Needs().Within {
				groups = o.Groups
			}
			for _, group := range groups {
				all = append(all, way{name, append(orders, "")[0], p2p.Auto, group})
			}
			continue
		}
		if len(orders) == 0 {
			orders = []scheme.Order{""}
		}
		for _, order := range orders {
			for _, path := range o.Paths {
				for _, group := range o.Groups {
					if takes(name, p2p.Path(path)) && (group == 1 || name.Needs().Groups) {
						all = append(all, way{name, order, p2p.Path(path), group})
					}
				}
			}
		}
	}
	return all
}

// compareSchemes adds to the rows how much faster they are than the baseline and than the
// best two-stream scheme of the same problem on as many devices, and than the best scheme
// of the same problem on one. Where these were not measured it adds nothing.
func compareSchemes(rows []results.Row) (compared []results.Row) {
	for _, row := range rows {
		problem := problemOf(row)
		devices := row.Text("devices")
		same := func(other results.Row, name scheme.Scheme) bool {
			return problemOf(other) == problem && other.Text("devices") == devices &&
				other.Text("scheme") == string(name)
		}
		row = over(row, results.OverBaseline, best(rows, func(o results.Row) bool { return same(o, scheme.Baseline) }))
		row = over(row, results.OverTwoStream, best(rows,
			func(o results.Row) bool { return same(o, scheme.TwoStream) }))
		row = over(row, results.SpeedUp, best(rows,
			func(o results.Row) bool { return problemOf(o) == problem && o.Text("devices") == "1" }))
		compared = append(compared, row)
	}
	return compared
}

// problemOf names what is solved in a row.
func problemOf(row results.Row) [5]string {
	return [5]string{row.Text("stencil"), row.Text("points"), row.Text("precision"), row.Text("norms"),
		row.Text("sums")}
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
