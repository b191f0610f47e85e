package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// scalingBench is what halox bench scaling is asked for.
type scalingBench struct {
	stepBench
	schemes     []string
	order, path string
	mode        string
}

// The values of --mode, and, but for both, of the label mode.
const (
	strongScaling = "strong"
	weakScaling   = "weak"
	bothScalings  = "both"
)

func newBenchScalingCommand() *cobra.Command {
	var b scalingBench
	cmd := &cobra.Command{
		Use:   "scaling",
		Short: "Time a step on more and more devices, of one size in all or one size each",
		Long: `Time a step on more and more devices, of one size in all or one size each.

Strong scaling solves one problem, of --points along each axis, on more and more
devices: the speed-up is the time of a step on one device over that on n. Weak scaling
gives each device a cube of its own of so many points: they lie side by side, along the
grid's last axis first, and the speed-up is n times that. The efficiency is the speed-up
over n. Each scheme is held against itself: which is the fastest, their steps tell. Scheme
auto is that which halox run takes, the fastest on GPUs for each grid and number of
devices. One device is measured once for both modes. Where it is not among --devices, the
fewest count as ideal.

Steps are timed as by halox bench schemes. Ctrl-C ends the bench and keeps what it had;
--resume goes on from there.`,
		Example: `  halox bench scaling --record scaling.json
  halox plot scaling.json --where mode=strong --where precision=float64 -o strong.svg
  halox bench scaling --scheme two-stream,assisted --points 256,512 --mode strong`,
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
	f.StringSliceVar(&b.schemes, "scheme", []string{string(scheme.Auto)}, "schemes, or auto")
	f.StringVar(&b.order, "order", string(scheme.LeftRight), "of two-stream: left-right or pairwise")
	f.StringVar(&b.path, "path", string(p2p.Auto), "auto, staged, peer or direct")
	f.StringVar(&b.mode, "mode", bothScalings, "strong, weak or both")
	return cmd
}

// start does what the flags say.
func (b *scalingBench) start(ctx context.Context, out, notes io.Writer) error {
	for _, wrong := range []error{
		eachOf("scheme", b.schemes, append(textsOf(scheme.All()), string(scheme.Auto))...),
		oneOf("order", b.order, string(scheme.LeftRight), string(scheme.Pairwise)),
		oneOf("path", b.path, string(p2p.Auto), string(p2p.Staged), string(p2p.Peer), string(p2p.Direct)),
		oneOf("mode", b.mode, strongScaling, weakScaling, bothScalings),
		b.checkPath(), b.check(),
	} {
		if wrong != nil {
			return wrong
		}
	}
	return b.run(ctx, results.KindScaling, out, notes, b.tasks, compareScaling)
}

// checkPath refuses a path that a scheme does not take.
func (b *scalingBench) checkPath() error {
	for _, s := range b.schemes {
		if path := p2p.Path(b.path); path != p2p.Auto && !takes(scheme.Scheme(s), path) {
			return fmt.Errorf("--path %s: scheme %s has a path of its own: leave --path out", path, s)
		}
	}
	return nil
}

// modes returns those that are wanted.
func (b *scalingBench) modes() []string {
	if b.mode == bothScalings {
		return []string{strongScaling, weakScaling}
	}
	return []string{b.mode}
}

// tasks returns a task for each row.
func (b *scalingBench) tasks(r *stepRun) (all []task) {
	for precision, points := range b.problems() {
		for _, mode := range b.modes() {
			for _, name := range distinct(b.schemes) {
				for _, devices := range b.counts {
					c := stepCase{
						precision: precision, size: b.cube(points), devices: devices,
						scheme: scheme.Scheme(name), order: scheme.Order(b.order), path: p2p.Path(b.path),
					}
					if mode == weakScaling {
						c.parts = b.parts(devices)
						for axis := range c.size {
							c.size[axis] *= c.parts[axis]
						}
					}
					t := r.task(b.labels(c, points, mode), c)
					if mode == weakScaling && devices == 1 {
						t = r.taken(t, b.labels(c, points, strongScaling), "mode", mode)
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
func (r *stepRun) taken(t task, other results.Row, label, value string) task {
	return task{t.labels, func(ctx context.Context) ([]results.Row, error) {
		if row, ok := r.record.Find(other); ok {
			return []results.Row{row.Label(label, value)}, nil
		}
		return t.measure(ctx)
	}}
}

// parts returns how n cubes lie side by side.
func (b *scalingBench) parts(n int) domain.Vec {
	if b.cut == cutSlabs {
		return slabs(b.dims, n)
	}
	return cubes(b.dims, n)
}

// labels begins the row of a case. That on one device has the path of the others, and none
// has an order that its scheme does not have, so that all lie on one curve.
func (b *scalingBench) labels(c stepCase, points int, mode string) results.Row {
	row := c.labels().Label("path", b.path).Label("points", points).Label("mode", mode)
	if len(needsOf(c.scheme).Orders) == 0 {
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
		compared = append(compared, row.Value(results.SpeedUp, speedup).Value(results.Efficiency, speedup.Scale(1/devices)))
	}
	return compared
}

// fewest returns the number of devices, and the time of a step, of the row with the
// fewest devices on the curve of a row.
func fewest(rows []results.Row, of results.Row) (devices, step float64) {
	curve := func(row results.Row) (name [6]string) {
		for i, label := range []string{"scheme", "order", "points", "precision", "mode", "stencil"} {
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
