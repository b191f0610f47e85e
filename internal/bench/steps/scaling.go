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

// ScalingOptions say which schemes make steps on more and more devices.
type ScalingOptions struct {
	Options
	Schemes []string // or auto
	Order   string   // of schemes that have one; "" for left-right
	Path    string   // or auto
	Mode    string   // see Modes
}

// Check refuses options that make no sense, and fills in those that were left open. What is named
// twice is measured once.
func (o *ScalingOptions) Check() error {
	o.Schemes = option.Distinct(o.Schemes)
	return cmp.Or(
		option.EachOf("scheme", o.Schemes, append(Schemes(), string(scheme.Auto))...),
		o.checkOrder(),
		option.OneOf("path", o.Path, append([]string{string(p2p.Auto)}, Paths()...)...),
		option.OneOf("mode", o.Mode, modes()...),
		o.checkPath(), o.check(),
	)
}

// checkOrder refuses an order that no scheme has, and fills it in.
func (o *ScalingOptions) checkOrder() error {
	ordered := func(s string) bool { return s == string(scheme.Auto) || len(needsOf(scheme.Scheme(s)).Orders) > 0 }
	if o.Order != "" && !slices.ContainsFunc(o.Schemes, ordered) {
		return fmt.Errorf("--order %s: none of the schemes %s has an order: leave --order out", o.Order, strings.Join(o.Schemes, ", "))
	}
	o.Order = cmp.Or(o.Order, string(scheme.LeftRight))
	return option.OneOf("order", o.Order, string(scheme.LeftRight), string(scheme.Pairwise))
}

// checkPath refuses a path that a scheme does not take.
func (o *ScalingOptions) checkPath() error {
	for _, s := range o.Schemes {
		if path := p2p.Path(o.Path); path != p2p.Auto && !takes(scheme.Scheme(s), path) {
			return fmt.Errorf("--path %s: scheme %s has a path of its own: leave --path out", path, s)
		}
	}
	return nil
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
				for _, devices := range o.counts(r.Machine) {
					c := stepCase{
						precision: precision, size: o.cube(points), devices: devices,
						scheme: scheme.Scheme(name), order: scheme.Order(o.Order), path: p2p.Path(o.Path),
					}
					if mode == weakScaling {
						c.parts = o.parts(devices)
						for axis := range c.size {
							c.size[axis] *= c.parts[axis]
						}
					}
					t := r.task(o.labels(c, points, mode), c)
					if mode == weakScaling && devices == 1 {
						t = r.taken(t, o.labels(c, points, strongScaling), "mode", mode)
					}
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// taken makes of a task one that takes over the row of another with the same case, under its
// own label, where that was measured before.
func (r *run) taken(t bench.Task, other results.Row, label, value string) bench.Task {
	return bench.Task{Labels: t.Labels, Measure: func(ctx context.Context) ([]results.Row, error) {
		if row, ok := r.record.Find(other); ok {
			return []results.Row{row.Label(label, value)}, nil
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
	if len(needsOf(c.scheme).Orders) == 0 {
		row = row.Label("order", "")
	}
	return row
}
