package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/stencil"
)

// sweepBench is what halox bench sweep is asked for.
type sweepBench struct {
	backend                     string
	device                      int
	stencils, precisions, norms []string
	points2D, points3D          []int
	budget                      time.Duration
	settings                    any // all of them, for the record
	recorder
}

// shape is a stencil that can be swept.
type shape struct {
	name    string
	kind    stencil.Kind
	spacing []float64 // one number an axis: axes that are alike have one weight
}

// stencil returns heat's of the shape; Laplace's has as many operations.
func (s shape) stencil() (stencil.Stencil, error) { return stencil.HeatOf(s.kind, s.spacing, 0.1, 0.1) }

// flops returns the operations a point: a product for the centre and for each group of
// points that have one weight, and a sum for each point but one.
func flops(s stencil.Stencil) int { return 1 + len(s.Groups) + s.Points() - 1 }

// shapes are the stencils of package stencil, stars of one step along each axis also with
// a weight for each axis.
func shapes() (all []shape) {
	for _, spacing := range [][]float64{{1, 1}, {1, 1, 1}} {
		points := map[int]bool{}
		for _, kind := range stencil.Kinds(len(spacing)) {
			name := fmt.Sprintf("%d-point", kind.Points)
			if points[kind.Points] {
				name += "-" + string(kind.Shape)
			}
			points[kind.Points] = true
			all = append(all, shape{name, kind, spacing})
		}
	}
	return append(all,
		shape{"5-point-axes", stencil.Kinds(2)[0], []float64{1, 2}},
		shape{"7-point-axes", stencil.Kinds(3)[0], []float64{1, 2, 3}})
}

func shapeNames() (names []string) {
	for _, s := range shapes() {
		names = append(names, s.name)
	}
	return names
}

// The values of --norms.
const (
	withoutNorms = "no"
	withNorms    = "every-step"
)

func newBenchSweepCommand() *cobra.Command {
	var b sweepBench
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Time sweeps of stencils on one device, beside copies of the same bytes",
		Long: `Time sweeps of stencils on one device, beside copies of the same bytes.

A sweep reads one array and writes another; the next one goes back. The stencils are
those of stencil.points in a config, and 5-point-axes and 7-point-axes, which have a
weight for each axis. GFLOP/s count a product for each weight and a sum for each point
but one: 6 for 5-point, 8 for 7-point. Rates count two values a point, one read and one written, and so does the
driver's copy of as many points from one array to the other, which stands beside. With
norms, a sweep takes those of the change and of the values on its way, and they are
sent to the host, as where every step is checked. The shape of sweeps is tuned first.

Times are those of the device, from one sweep to the next of some that were queued
before the first began: the median of batches. On GPUs, what a sweep writes is compared
with what the host's kernels write, bit by bit, for grids of up to 4 million points.

Ctrl-C ends the bench between two measurements and keeps what it had; --resume goes
on from there.`,
		Example: `  halox bench sweep --record sweep.json --plot sweep.svg
  halox bench sweep --stencils 7-point --points-3d 128,256,512 --precision float64`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := untilInterrupted(cmd.Context())
			defer release()
			b.settings = settingsOf(cmd.Flags())
			if err := cmp.Or(b.uses(cmd.Flags(), "points-2d", 2), b.uses(cmd.Flags(), "points-3d", 3)); err != nil {
				return err
			}
			return b.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.IntVar(&b.device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&b.stencils, "stencils", []string{"5-point", "7-point"}, "stencils: "+strings.Join(shapeNames(), ", "))
	f.IntSliceVar(&b.points2D, "points-2d", []int{1024, 2048, 4096, 8192, 16384}, "points along each axis in two dimensions")
	f.IntSliceVar(&b.points3D, "points-3d", []int{64, 128, 256, 512, 768}, "points along each axis in three dimensions")
	f.StringSliceVar(&b.precisions, "precision", []string{string(kernels.Float32), string(kernels.Float64)}, "float32, float64")
	f.StringSliceVar(&b.norms, "norms", []string{withoutNorms, withNorms}, "whether norms are taken: no, every-step")
	f.DurationVar(&b.budget, "budget", 100*time.Millisecond, "how long to take for each measurement, about")
	b.addFlags(f)
	return cmd
}

// check refuses flags that make no sense. What is named twice is measured once.
func (b *sweepBench) check() error {
	b.points2D, b.points3D = distinct(b.points2D), distinct(b.points3D)
	b.precisions, b.norms = distinct(b.precisions), distinct(b.norms)
	return cmp.Or(
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		eachOf("stencils", b.stencils, shapeNames()...),
		eachOf("precision", b.precisions, string(kernels.Float32), string(kernels.Float64)),
		eachOf("norms", b.norms, withoutNorms, withNorms),
		checkPoints("points-2d", b.points2D), checkPoints("points-3d", b.points3D),
		checkBudget(b.budget),
		b.recorder.check(),
	)
}

// uses refuses a flag for stencils of so many dimensions where none is to be measured.
func (b *sweepBench) uses(flags *pflag.FlagSet, flag string, dims int) error {
	used := slices.ContainsFunc(shapes(), func(s shape) bool {
		return len(s.spacing) == dims && slices.Contains(b.stencils, s.name)
	})
	if !used && flags.Changed(flag) {
		return fmt.Errorf("--%s: none of the stencils %s has %d dimensions", flag, strings.Join(b.stencils, ", "), dims)
	}
	return nil
}

// checkPoints refuses sizes of grids that are none.
func checkPoints(flag string, all []int) error {
	const most = 1 << 20
	if i := slices.IndexFunc(all, func(n int) bool { return n < 1 || n > most }); i >= 0 {
		return fmt.Errorf("--%s %d: give points along an axis, 1 to %d", flag, all[i], most)
	}
	return nil
}

// run measures everything and prints the table. Interrupted or failed, it keeps what it had.
func (b *sweepBench) run(ctx context.Context, out, notes io.Writer) (err error) {
	if err := b.check(); err != nil {
		return err
	}
	if b.device < 0 {
		return fmt.Errorf("--device %d: devices are counted from 0", b.device)
	}
	m, err := openDevices(configs.Devices{Backend: b.backend, IDs: []int{b.device}}, notes)
	if err != nil {
		return fmt.Errorf("--backend %s --device %d: %w", b.backend, b.device, err)
	}
	defer func() { err = errors.Join(err, m.close()) }()
	record := m.benchRecord(ctx, results.KindSweep, b.settings, nil)
	if err := b.begin(record); err != nil {
		return err
	}
	r := &sweepRun{
		device: m.devices[0], compiler: kernels.CompilerFromEnv(),
		pace: pace{first: 2, most: maxSweeps, length: b.budget.Seconds() * 1e6 / batches},
	}
	failure := b.measureAll(ctx, record, b.tasks(r), notes)
	return errors.Join(failure, b.keep(record, out, notes), faults(record, notes), nothing(record, failure))
}

// tasks are a stencil, a precision and a size each, with norms and without.
func (b *sweepBench) tasks(r *sweepRun) (all []task) {
	for _, s := range shapes() {
		if !slices.Contains(b.stencils, s.name) {
			continue
		}
		sizes := b.points2D
		if len(s.spacing) == 3 {
			sizes = b.points3D
		}
		for _, precision := range b.precisions {
			for _, n := range sizes {
				c := sweepCase{shape: s, real: kernels.Real(precision), points: n, norms: b.norms}
				all = append(all, task{c.labels(), func(ctx context.Context) ([]results.Row, error) { return r.measure(ctx, c) }})
			}
		}
	}
	return all
}
