package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
)

// sweepBench is what halox bench sweep is asked for.
type sweepBench struct {
	backend                     string
	device                      int
	stencils, precisions, norms []string
	points2D, points3D          []int
	budget                      time.Duration
	settings                    any // all of them, for the record
	keeper
}

// shape is a stencil that can be swept.
type shape struct {
	name    string
	spacing []float64 // one number an axis: axes that are alike have one weight
	flops   int       // operations a point
}

// shapes are the stencils of package stencil: heat's, and Laplace's has as many operations.
func shapes() []shape {
	return []shape{
		{"5-point", []float64{1, 1}, 6},          // 3+1 sums, 2 products
		{"7-point", []float64{1, 1, 1}, 8},       // 5+1 sums, 2 products
		{"5-point-axes", []float64{1, 2}, 7},     // 2+2 sums, 3 products
		{"7-point-axes", []float64{1, 2, 3}, 10}, // 3+3 sums, 4 products
	}
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

A sweep reads one array and writes another; the next one goes back. The stencils and
their operations a point, by which GFLOP/s count, are 5-point (6) and 7-point (8),
with one weight for all neighbours, and 5-point-axes (7) and 7-point-axes (10), with one
an axis. Rates count two values a point, one read and one written, and so does the
driver's copy of as many points from one array to the other, which stands beside. With
norms, the changes and values of each step are reduced too, and sent to the host, as
where every step is checked.

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
			return b.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.IntVar(&b.device, "device", 0, "the device, counted from 0")
	f.StringSliceVar(&b.stencils, "stencils", []string{"5-point", "7-point"}, "stencils: 5-point, 7-point, 5-point-axes, 7-point-axes")
	f.IntSliceVar(&b.points2D, "points-2d", []int{1024, 2048, 4096, 8192, 16384}, "points along each axis in two dimensions")
	f.IntSliceVar(&b.points3D, "points-3d", []int{64, 128, 256, 512, 768}, "points along each axis in three dimensions")
	f.StringSliceVar(&b.precisions, "precision", []string{string(kernels.Float32), string(kernels.Float64)}, "float32, float64")
	f.StringSliceVar(&b.norms, "norms", []string{withoutNorms, withNorms}, "whether norms are taken: no, every-step")
	f.DurationVar(&b.budget, "budget", 100*time.Millisecond, "how long to take for each measurement, about")
	b.addFlags(f)
	return cmd
}

// check refuses flags that make no sense.
func (b *sweepBench) check() error {
	return cmp.Or(
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		eachOf("stencils", b.stencils, shapeNames()...),
		eachOf("precision", b.precisions, string(kernels.Float32), string(kernels.Float64)),
		eachOf("norms", b.norms, withoutNorms, withNorms),
		checkPoints("points-2d", b.points2D), checkPoints("points-3d", b.points3D),
		checkBudget(b.budget),
		b.keeper.check(),
	)
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
		pace: pace{first: 2, most: mostSweeps, length: b.budget.Seconds() * 1e6 / batches},
	}
	failure := b.measureAll(ctx, record, b.tasks(r), notes)
	return errors.Join(failure, b.keep(record, out, notes), faults(record, notes))
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
