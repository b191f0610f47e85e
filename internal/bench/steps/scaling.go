package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// The modes of scaling; strong and weak are also values of label mode.
const (
	strongScaling = "strong"
	weakScaling   = "weak"
	bothScalings  = "both"
)

// modes returns the modes of scaling.
func modes() []string { return []string{strongScaling, weakScaling, bothScalings} }

// ScalingOptions say which schemes make steps on more and more devices.
type ScalingOptions struct {
	Options
	Schemes []string // or auto
	Order   string   // of schemes that have one; "" for left-right
	Path    string   // or auto
	Mode    string   // see Modes
	Groups  []int    // steps between two exchanges
}

// Check rejects impossible options, and fills in those that were left open. What is named
// twice is measured once.
func (o *ScalingOptions) Check() error {
	o.Schemes, o.Groups = option.Distinct(o.Schemes), option.Distinct(o.Groups)
	if len(o.Groups) == 0 {
		o.Groups = []int{1}
	}
	return cmp.Or(
		option.EachOf("scheme", o.Schemes, append(Schemes(), string(scheme.Auto))...),
		o.checkOrder(),
		option.OneOf("path", o.Path, append([]string{string(p2p.Auto)}, Paths()...)...),
		option.OneOf("mode", o.Mode, modes()...),
		o.checkPath(), o.checkGroups(), o.check(),
	)
}

// checkOrder rejects an order that no scheme has, and fills it in.
func (o *ScalingOptions) checkOrder() error {
	ordered := func(s string) bool { return s == string(scheme.Auto) || len(scheme.Scheme(s).Needs().Orders) > 0 }
	if o.Order != "" && !slices.ContainsFunc(o.Schemes, ordered) {
		return fmt.Errorf("--order %s: none of the schemes %s has an order: leave --order out", o.Order,
			strings.Join(o.Schemes, ", "))
	}
	o.Order = cmp.Or(o.Order, string(scheme.LeftRight))
	return option.OneOf("order", o.Order, string(scheme.LeftRight), string(scheme.Pairwise))
}

// checkPath rejects a path that a scheme does not take.
func (o *ScalingOptions) checkPath() error {
	for _, s := range o.Schemes {
		if path := p2p.Path(o.Path); path != p2p.Auto && !takes(scheme.Scheme(s), path) {
			return fmt.Errorf("--path %s: scheme %s has a path of its own: leave --path out", path, s)
		}
	}
	return nil
}

// checkGroups rejects steps between two exchanges that a scheme does not make.
func (o *ScalingOptions) checkGroups() error {
	for _, s := range o.Schemes {
		if slices.Max(o.Groups) > 1 && s != string(scheme.Auto) && !scheme.Scheme(s).Needs().Groups {
			return fmt.Errorf("--exchange-steps %d: scheme %s exchanges after each step", slices.Max(o.Groups), s)
		}
	}
	return groups(o.Groups)
}

// Run measures the steps on more and more devices.
func (o *ScalingOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	r, err := o.newRun(ctx, results.KindScaling, on, to)
	if err != nil {
		return err
	}
	failure := to.Measure(ctx, o.tasks(r))
	to.Record.Rows = compareScaling(to.Record.Rows)
	return failure
}

// modes returns those that are wanted.
func (o *ScalingOptions) modes() []string {
	if o.Mode == bothScalings {
		return []string{strongScaling, weakScaling}
	}
	return []string{o.Mode}
}

// tasks returns a task for each row.
func (o *ScalingOptions) tasks(r *run) (all []bench.Task) {
	for precision, points := range o.problems() {
		for _, mode := range o.modes() {
			for _, name := range o.Schemes {
				for _, group := range o.Groups {
					for _, devices := range o.counts(r.Machine) {
						c := stepCase{
							precision: precision, size: o.cube(points), devices: devices,
							scheme: scheme.Scheme(name), order: scheme.Order(o.Order), path: p2p.Path(o.Path),
							group: group,
						}
						all = append(all, o.task(r, c, points, mode))
					}
				}
			}
		}
	}
	return all
}

// task returns the task of a row. A device alone exchanges nothing, and is measured once.
func (o *ScalingOptions) task(r *run, c stepCase, points int, mode string) bench.Task {
	if mode == weakScaling {
		c.parts = o.parts(c.devices)
		for axis := range c.size {
			c.size[axis] *= c.parts[axis]
		}
	}
	row := o.labels(c, points, mode)
	if c.devices > 1 {
		return r.task(row, c)
	}
	c.group = 1
	t := r.task(row, c)
	if mode == weakScaling {
		t = r.taken(t, o.labels(c, points, strongScaling), row)
	}
	return r.taken(t, o.labels(c, points, mode), row)
}

// taken makes of a task one that takes over the values of another row of the same case, where that was measured before.
func (r *run) taken(t bench.Task, other, row results.Row) bench.Task {
	return bench.Task{Labels: t.Labels, Measure: func(ctx context.Context) ([]results.Row, error) {
		if found, ok := r.record.Find(other); ok {
			for _, l := range row.Labels {
				found = found.Label(l.Name, l.Value)
			}
			return []results.Row{found}, nil
		}
		return t.Measure(ctx)
	}}
}

// parts returns how n cubes lie side by side.
func (o *ScalingOptions) parts(n int) domain.Vec {
	if o.Cut == cutSlabs {
		return bench.Slabs(o.Dims, n)
	}
	return bench.Cubes(o.Dims, n)
}

// labels begins the row of a case. That on one device has the path of the others, and none
// has an order that its scheme does not have, so that all lie on one curve.
func (o *ScalingOptions) labels(c stepCase, points int, mode string) results.Row {
	row := c.labels().Label("path", o.Path).Label("points", points).Label("mode", mode)
	if len(c.scheme.Needs().Orders) == 0 {
		row = row.Label("order", "")
	}
	return row
}

// compareScaling adds the speed-up and the efficiency to the rows, against the fewest
// devices that were measured, which count as ideal.
func compareScaling(rows []results.Row) (compared []results.Row) {
	for _, row := range rows {
		step, ok := row.Get(results.Step)
		devices, _ := row.Float("devices")
		few, base := fewest(rows, row)
		if !ok {
			compared = append(compared, row)
			continue
		}
		times := few // as many times the work, of weak scaling
		if row.Text("mode") == weakScaling {
			times = devices
		}
		speedup := step.Under(base * times)
		compared = append(compared, row.Value(results.SpeedUp, speedup).Value(results.Efficiency,
			speedup.Scale(1/devices)))
	}
	return compared
}

// fewest returns the number of devices, and the time of a step, of the row with the
// fewest devices on the curve of a row.
func fewest(rows []results.Row, of results.Row) (devices, step float64) {
	curve := func(row results.Row) (name [7]string) {
		for i, label := range []string{"scheme", "order", "points", "precision", "mode", "stencil",
			"steps_an_exchange"} {
			name[i] = row.Text(label)
		}
		return name
	}
	for _, row := range rows {
		n, _ := row.Float("devices")
		if s, ok := row.Get(results.Step); ok && curve(row) == curve(of) && (devices == 0 || n < devices) {
			devices, step = n, s.Median
		}
	}
	return devices, step
}
