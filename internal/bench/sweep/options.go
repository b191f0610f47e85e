package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/stencil"
)

// Options selects the measured sweeps: every stencil over the grids of its dimensions, in every precision.
type Options struct {
	Devices            []int // the ID of one
	Stencils           []string
	Precisions         []string
	Norms              []int    // steps between norms: 0 (no norms) or 1
	Sums               []string // mode of the sums of norms
	Points2D, Points3D []int    // points along each axis, per number of dimensions; nil: defaults of Command
	Budget             time.Duration
}

// Command returns halox bench sweep.
func Command() bench.Command {
	return bench.Command{
		Name: "sweep", Short: "Time sweeps of stencils on one device, and copies of the same size", Alone: true,
		Options: &Options{
			Devices:  []int{0},
			Stencils: []string{"5-point", "7-point"}, Precisions: option.AllPrecisions(), Norms: []int{0, 1},
			Sums: []string{string(sums.Fast)}, Points2D: points(2), Points3D: points(3), Budget: 100 * time.Millisecond,
		},
		About: `A sweep reads one array and writes another; the next sweep swaps them. The stencils are those of
stencil.points in a config, and 5-point-axes and 7-point-axes, which have a weight for each
axis. GFLOP/s count one product per weight, and one sum fewer than points. Rates count two
values per point, one read and one written; so does the driver's copy of the same number of
points. With norms, a sweep computes the norms of the change and of the values, and sends them
to the host. The shape of thread blocks is tuned first.

Times are medians of batches, by the device's clock. On GPUs, the results are compared with
those of the host's kernels, bit by bit, for grids of up to 4 million points.

Ctrl-C keeps the results so far; --resume continues.`,
		Example: `  halox bench sweep --record sweep.json --plot sweep.svg
  halox bench sweep --stencils 7-point --points-3d 128,256,512 --precisions float64`,
	}
}

// points returns the default numbers of points along each axis.
func points(dims int) []int {
	if dims == 2 {
		return []int{1024, 2048, 4096, 8192, 16384}
	}
	return []int{64, 128, 256, 512, 768}
}

// Flags returns the flags.
func (o *Options) Flags() []option.Flag {
	var stencils []string
	for _, s := range shapes() {
		stencils = append(stencils, s.Name)
	}
	return []option.Flag{
		option.DeviceIDs(&o.Devices, "ID of the device"),
		{Name: "stencils", Value: &o.Stencils, Help: "stencils: {}", Choices: stencils},
		{Name: "points-2d", Value: &o.Points2D, Help: "points along each axis in two dimensions", Open: true, From: 1,
			To: option.MaxPoints},
		{Name: "points-3d", Value: &o.Points3D, Help: "points along each axis in three dimensions", Open: true, From: 1,
			To: option.MaxPoints},
		option.Precisions(&o.Precisions),
		{Name: "norms", Value: &o.Norms, Help: "steps between norms; 0: no norms", To: 1},
		option.Sums(&o.Sums, option.Texts(sums.Modes())),
		option.Budget(&o.Budget),
	}
}

// Check completes the points, and rejects points for dimensions that no stencil has.
func (o *Options) Check() error {
	return cmp.Or(option.CheckDeviceIDs(o.Devices, 1, false), o.checkPoints("points-2d", 2, &o.Points2D),
		o.checkPoints("points-3d", 3, &o.Points3D))
}

func (o *Options) checkPoints(name string, dims int, all *[]int) error {
	used := slices.ContainsFunc(shapes(), func(s shape) bool {
		return s.dims() == dims && slices.Contains(o.Stencils, s.Name)
	})
	if *all != nil && !used {
		return fmt.Errorf("--%s: must not be set without a stencil of %d dimensions", name, dims)
	}
	if *all == nil {
		*all = points(dims)
	}
	return nil
}

// Wants returns the device.
func (o *Options) Wants(*mpi.Processes) (bench.Wanted, error) {
	return bench.Wanted{IDs: o.Devices}, nil
}

// shape is a stencil that can be swept.
type shape struct {
	option.Stencil
	spacing []float64 // one number per axis: axes with equal numbers have one weight
}

func (s shape) dims() int { return len(s.spacing) }

// stencil returns the stencil of the heat equation with the shape; that of the Laplace equation has as many operations.
func (s shape) stencil() (stencil.Stencil, error) { return stencil.HeatOf(s.Kind, s.spacing, 0.1, 0.1) }

// shapes are the stencils of package stencil; stars of radius 1 also with a separate weight for each axis.
func shapes() (all []shape) {
	for _, spacing := range [][]float64{{1, 1}, {1, 1, 1}} {
		for _, s := range option.Stencils(len(spacing)) {
			all = append(all, shape{s, spacing})
		}
	}
	return append(all,
		shape{option.Stencil{Name: "5-point-axes", Kind: stencil.Kinds(2)[0]}, []float64{1, 2}},
		shape{option.Stencil{Name: "7-point-axes", Kind: stencil.Kinds(3)[0]}, []float64{1, 2, 3}})
}
