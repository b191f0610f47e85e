package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// schemesOptions selects the schemes and their settings.
type schemesOptions struct {
	common
	Schemes, Paths []string
	Norms          []int    // steps between norms; 0: no norms
	Sums           []string // mode of the sums of norms
	// exchange intervals, for schemes that support several steps, on several devices or if they exchange within one
	Groups []int
}

// SchemesCommand returns halox bench schemes.
func SchemesCommand() bench.Command {
	return bench.Command{
		Name: "schemes", Short: "Time a step of every scheme over every path, on increasing numbers of devices",
		Options: &schemesOptions{common: defaults(), Schemes: option.Texts(scheme.All()),
			Paths: option.Texts(p2p.Paths()), Norms: []int{0}, Sums: []string{string(sums.Fast)}, Groups: []int{1}},
		About: `Solves the heat equation on cubes, or squares with --dims 2, with every scheme, path and order.
Steps are timed in intervals of about 20 ms; between intervals all devices are idle. A row is the
median over intervals, measured until the median is known to within a percent, or --budget is
spent. GFLOP/s count one product per weight, and one sum fewer than points: 8 operations per
point of the 7-point stencil. The share is the rate of reading and writing each point once,
divided by the rate of a plain copy within a device. Rows are compared with the baseline and the
fastest two-stream scheme on the same number of devices, and with the fastest scheme on one
device.

--norms n adds rows with norms every n steps, as in a run with a tolerance. Their sums are fast;
--sums fast,reproducible adds reproducible sums, the default of a run. --exchange-steps 1,2,4,8
adds schemes that run several steps between two exchanges. --stencils 7-point,13-point,19-point
adds stencils, as of stencil.points in a config: with 13 points ghost regions are two points
wide, and with 19 messages also go to diagonal neighbors.

Combinations that a scheme, a link or the memory does not allow are omitted, with a note in the
record. Ctrl-C keeps the results so far; --resume continues.`,
		Example: `  halox bench schemes --record schemes.json
  halox plot schemes.json --where precision=float64 --where devices=4 -o schemes.svg
  halox bench schemes --dims 2 --schemes two-stream,assisted --paths peer --device-counts 4
  halox bench schemes --points 64,128 --exchange-steps 1,2,4,8
  halox bench schemes --schemes baseline,two-stream,assisted --stencils 7-point,13-point,19-point
  halox bench schemes --points 1024,1536 --precisions float64 --cut slabs`,
	}
}

// Flags returns the flags.
func (o *schemesOptions) Flags() []option.Flag {
	return append(o.common.flags(), []option.Flag{
		{Name: "schemes", Value: &o.Schemes, Help: "schemes: {}", Choices: option.Texts(scheme.All())},
		{Name: "norms", Value: &o.Norms, Help: "steps between norms; 0: no norms",
			To: option.NoLimit},
		option.Sums(&o.Sums, option.Texts(sums.Modes())),
		exchangeSteps(&o.Groups),
		option.Paths(&o.Paths, option.Texts(p2p.Paths())),
		o.stencils(),
	}...)
}

func exchangeSteps(value *[]int) option.Flag {
	return option.Flag{Name: "exchange-steps", Value: value, From: 1, To: solvers.MaxGroup,
		Help: fmt.Sprintf("steps between two exchanges, 1 to %d", solvers.MaxGroup)}
}

// Check completes the options.
func (o *schemesOptions) Check() error { return o.complete() }

// Run measures the steps of all schemes.
func (o *schemesOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	for _, s := range o.Schemes {
		if !slices.ContainsFunc(o.Paths, func(path string) bool { return takes(scheme.Scheme(s), p2p.Path(path)) }) {
			fmt.Fprintf(to.Notes, "omitted on several devices: scheme %s, which supports none of --paths %s\n", s,
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
		return errors.New("nothing could be measured: no scheme of --schemes supports these --paths and " +
			"--exchange-steps on this number of devices")
	}
	failure := to.Measure(ctx, tasks)
	to.Record.Rows = compareSchemes(to.Record.Rows)
	return failure
}

// noteGroups prints which schemes are left out with which exchange intervals.
func (o *schemesOptions) noteGroups(notes io.Writer) {
	for _, group := range o.Groups {
		for _, s := range o.Schemes {
			if group > 1 && !scheme.Scheme(s).Needs().Groups {
				fmt.Fprintf(notes, "omitted on several devices: scheme %s with --exchange-steps %d: it exchanges "+
					"after each step\n", s, group)
			}
		}
	}
}

// tasks returns a task for each row.
func (o *schemesOptions) tasks(r *run) (all []bench.Task) {
	for c, points := range o.problems() {
		for _, devices := range o.counts(r.Machine) {
			for _, how := range o.ways(devices) {
				for _, m := range o.measurements() {
					c.size, c.devices, c.scheme, c.order = o.cube(points), devices, how.scheme, how.order
					c.path, c.group, c.norms, c.sums = how.path, how.group, m.norms, m.sums
					all = append(all, r.task(c.labels().Label("points", points), c))
				}
			}
		}
	}
	return all
}

// measurement is the interval of norms, and the mode of their sums.
type measurement struct {
	norms int
	sums  sums.Mode
}

// measurements returns one without norms, if requested, and one for each combination of interval and mode of sums.
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

// ways returns the schemes with their orders, paths and exchange intervals. A single device sends nothing, so each
// scheme appears once, or with all exchange intervals if it exchanges within a device.
func (o *schemesOptions) ways(devices int) (all []way) {
	for _, s := range o.Schemes {
		name := scheme.Scheme(s)
		orders := name.Needs().Orders
		if devices == 1 {
			groups := []int{1}
			if name.Needs().LocalGroups {
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

// compareSchemes adds to the rows the speed-ups over the baseline and the best two-stream scheme of the same problem on
// the same number of devices, and over the best scheme of the same problem on one device, if these were measured.
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

// problemOf names the problem of a row.
func problemOf(row results.Row) [5]string {
	return [5]string{row.Text("stencil"), row.Text("points"), row.Text("precision"), row.Text("norms"),
		row.Text("sums")}
}

// best returns the shortest step of the selected rows, empty if there are none.
func best(rows []results.Row, meant func(results.Row) bool) (shortest results.Sample) {
	for _, row := range rows {
		step, ok := row.Get(results.Step)
		if ok && meant(row) && (shortest.N == 0 || step.Median < shortest.Median) {
			shortest = step
		}
	}
	return shortest
}

// over adds to a row its speed-up over a step.
func over(row results.Row, m results.Metric, other results.Sample) results.Row {
	if step, ok := row.Get(results.Step); ok {
		row = row.Value(m, other.Over(step)) // omitted without the other
	}
	return row
}
