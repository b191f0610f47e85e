package steps

import (
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
	"github.com/halox/halox/streams"
)

// The modes of scaling; strong and weak are also values of label mode.
const (
	strongScaling = "strong"
	weakScaling   = "weak"
)

// scalingOptions selects the schemes that are timed on increasing numbers of devices.
type scalingOptions struct {
	common
	Schemes []string // or auto
	Order   string   // order of the schemes that have it; "" for the default of each
	Paths   []string // or auto
	Modes   []string // of scaling
	Groups  []int    // steps between two exchanges
}

// ScalingCommand returns halox bench scaling.
func ScalingCommand() bench.Command {
	return bench.Command{
		Name: "scaling", Short: "Time strong and weak scaling: a step on increasing numbers of devices",
		Options: &scalingOptions{common: defaults(), Schemes: []string{string(scheme.Auto)},
			Paths: []string{string(p2p.Auto)}, Groups: []int{1}, Modes: scalings()},
		About: `Strong scaling solves one problem, with --points along each axis, on increasing numbers of
devices: the speed-up is the time per step on one device divided by the time on n. Weak scaling
gives each device a cube with --points along each axis, adjacent along the grid's last axis
first: the speed-up is n times that ratio. The efficiency is the speed-up divided by n. Each
scheme is compared with itself; only halox plot draws the speed-up of strong scaling over the
fastest scheme on one device. Scheme auto is the one that halox run uses. If --device-counts
does not include 1, the smallest number is the reference. --exchange-steps 1,4 gives one curve
per number of steps between two exchanges, and --stencils 7-point,19-point one per stencil.

Steps are timed as in halox bench schemes. Ctrl-C keeps the results so far; --resume continues.`,
		Example: `  halox bench scaling --record scaling.json
  halox plot scaling.json --where mode=strong --where precision=float64 -o strong.svg
  halox bench scaling --schemes two-stream,assisted --points 256,512 --modes strong
  halox bench scaling --schemes fused,blocked --exchange-steps 1,4`,
	}
}

// Flags returns the flags.
func (o *scalingOptions) Flags() []option.Flag {
	auto := []string{string(scheme.Auto)}
	return append(o.common.flags(), []option.Flag{
		{Name: "schemes", Value: &o.Schemes, Help: "schemes: {}",
			Choices: append(auto, option.Texts(scheme.All())...)},
		{Name: "order", Value: &o.Order, Open: true, Choices: option.Texts(scheme.Orders()),
			Help: "order of the schemes that have it: {} (default: the first of each scheme)"},
		option.Paths(&o.Paths, append(auto, option.Texts(p2p.Paths())...)),
		exchangeSteps(&o.Groups),
		{Name: "modes", Value: &o.Modes, Help: "modes: {}", Choices: scalings()},
		o.stencils(),
	}...)
}

// Check rejects an order, paths and exchange intervals that the schemes do not support, and completes the options.
func (o *scalingOptions) Check() error {
	if err := o.complete(); err != nil {
		return err
	}
	var orders []scheme.Order
	for _, s := range o.Schemes {
		name, needs := scheme.Scheme(s), scheme.Scheme(s).Needs()
		if name == scheme.Auto {
			orders = scheme.Orders()
			continue
		}
		orders = append(orders, needs.Orders...)
		for _, path := range o.Paths {
			if path := p2p.Path(path); path != p2p.Auto && !takes(name, path) {
				return fmt.Errorf("--paths: must not be %s for scheme %s, which does not support it", path, s)
			}
		}
		if group := slices.Max(o.Groups); group > 1 && !needs.Groups {
			return fmt.Errorf("--exchange-steps: must be 1 for scheme %s, got %d", s, group)
		}
	}
	if o.Order != "" && !slices.Contains(orders, scheme.Order(o.Order)) {
		return fmt.Errorf("--order: must be an order of one of the schemes %s, got %q", strings.Join(o.Schemes, ", "),
			o.Order)
	}
	return nil
}

// Run measures the steps on increasing numbers of devices.
func (o *scalingOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	r, err := o.newRun(ctx, results.KindScaling, on, to)
	if err != nil {
		return err
	}
	failure := to.Measure(ctx, o.tasks(r))
	to.Record.Rows = compareScaling(to.Record.Rows)
	return failure
}

func scalings() []string { return []string{strongScaling, weakScaling} }

// tasks returns a task for each row.
func (o *scalingOptions) tasks(r *run) (all []bench.Task) {
	for c, points := range o.problems() {
		for _, mode := range o.Modes {
			for _, name := range o.Schemes {
				for _, path := range o.Paths {
					for _, group := range o.Groups {
						for _, devices := range o.counts(r.Machine) {
							c.size, c.devices, c.path, c.group = o.cube(points), devices, p2p.Path(path), group
							c.scheme, c.order = scheme.Scheme(name), scheme.Scheme(name).Order(scheme.Order(o.Order))
							all = append(all, o.task(r, c, points, mode))
						}
					}
				}
			}
		}
	}
	return all
}

// task returns the task of a row. A single device exchanges nothing, and is measured once.
func (o *scalingOptions) task(r *run, c stepCase, points int, mode string) bench.Task {
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
	c.group, c.path = 1, p2p.Path(o.Paths[0])
	t := r.task(row, c)
	if mode == weakScaling {
		t = r.taken(t, o.labels(c, points, strongScaling), row)
	}
	return r.taken(t, o.labels(c, points, mode), row)
}

// taken returns a task that reuses the values of another row of the same case, if that was measured before.
func (r *run) taken(t bench.Task, other, row results.Row) bench.Task {
	measure := t.Measure
	t.Measure = func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
		if found, ok := r.record.Find(other); ok {
			for _, l := range row.Labels {
				found = found.Label(l.Name, l.Value)
			}
			return []results.Row{found}, nil
		}
		return measure(ctx, open)
	}
	return t
}

// parts returns the decomposition of n adjacent cubes.
func (o *scalingOptions) parts(n int) domain.Vec {
	if o.Cut == cutSlabs {
		return bench.Slabs(o.Dims, n)
	}
	return bench.Cubes(o.Dims, n)
}

// labels returns the labels of a case's row. A row on one device has the path of the others, and rows have an order
// only if the scheme has orders, so that all are on one curve.
func (o *scalingOptions) labels(c stepCase, points int, mode string) results.Row {
	row := c.labels().Label("path", c.path).Label("points", points).Label("mode", mode)
	if len(c.scheme.Needs().Orders) == 0 {
		row = row.Label("order", "")
	}
	return row
}

// compareScaling adds the speed-up and the efficiency to the rows, relative to the fewest measured devices, which count
// as ideal.
func compareScaling(rows []results.Row) (compared []results.Row) {
	for _, row := range rows {
		step, ok := row.Get(results.Step)
		devices, _ := row.Float("devices")
		few, base := fewest(rows, row)
		if !ok {
			compared = append(compared, row)
			continue
		}
		times := few // the work is that many times larger in weak scaling
		if row.Text("mode") == weakScaling {
			times = devices
		}
		speedup := base.Over(step).Scale(times)
		compared = append(compared, row.Value(results.SpeedUp, speedup).Value(results.Efficiency,
			speedup.Scale(1/devices)))
	}
	return compared
}

// fewest returns the number of devices, and the time of a step, of the row with the fewest devices on the curve of a
// row.
func fewest(rows []results.Row, of results.Row) (devices float64, step results.Sample) {
	curve := func(row results.Row) (name [8]string) {
		for i, label := range []string{"scheme", "order", "path", "points", "precision", "mode", "stencil",
			"steps_per_exchange"} {
			name[i] = row.Text(label)
		}
		return name
	}
	for _, row := range rows {
		n, _ := row.Float("devices")
		if s, ok := row.Get(results.Step); ok && curve(row) == curve(of) && (devices == 0 || n < devices) {
			devices, step = n, s
		}
	}
	return devices, step
}
