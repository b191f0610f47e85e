package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// sweepCase is a stencil over a grid with the same number of points along each axis.
type sweepCase struct {
	shape
	real   domain.Element
	points int
	norms  []int
	sums   []sums.Mode // of the norms
}

// cases returns the cases: a stencil, a precision and a size each, with norms and without.
func (o *Options) cases() (all []sweepCase) {
	var modes []sums.Mode
	for _, mode := range o.Sums {
		modes = append(modes, sums.Mode(mode))
	}
	for _, s := range shapes() {
		if !slices.Contains(o.Stencils, s.Name) {
			continue
		}
		sizes := o.Points3D
		if s.dims() == 2 {
			sizes = o.Points2D
		}
		for _, precision := range o.Precisions {
			for _, n := range sizes {
				all = append(all, sweepCase{shape: s, real: domain.Element(precision), points: n, norms: o.Norms,
					sums: modes})
			}
		}
	}
	return all
}

// labels begins the rows of a case.
func (c sweepCase) labels() results.Row {
	grid := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%dx", c.points), c.dims()), "x")
	return results.NewRow().Label("stencil", c.Name).Label("precision", c.real).Label("points", c.points).Label("grid",
		grid)
}

// operations returns those of a point.
func (c sweepCase) operations() int {
	s, err := c.stencil()
	if err != nil {
		return 0 // it was swept, so there is no error
	}
	return s.Operations()
}

// box is the owned points.
func (c sweepCase) box() domain.Box {
	size := domain.Vec{1, 1, 1}
	for a := range c.dims() {
		size[a] = c.points
	}
	return domain.Box{Hi: size}
}

// layout is that of the arrays.
func (c sweepCase) layout() (domain.Layout, error) {
	s, err := c.stencil()
	if err != nil {
		return domain.Layout{}, err
	}
	return domain.NewLayout(c.box(), s.Radius(), c.real.Size())
}

// rated adds the time and the rates of a sweep to a row.
func (c sweepCase) rated(row results.Row, took, plain results.Sample) results.Row {
	points := float64(c.box().Points())
	return row.Value(results.Updates, took.Under(points*1e6)).
		Value(results.GFLOPS, took.Under(points*float64(c.operations())/1e3)).
		Join(results.NewRow().Transfer(2*c.box().Points()*int64(c.real.Size()), took, plain))
}

// sameOwned returns an error that names the first row of owned points that differs.
func (c sweepCase) sameOwned(got, want []byte, l domain.Layout) error {
	size := int64(c.real.Size())
	for z := range c.box().Hi[2] {
		for y := range c.box().Hi[1] {
			from := l.Offset(domain.Vec{0, y, z}) * size
			to := from + int64(c.points)*size
			if !bytes.Equal(got[from:to], want[from:to]) {
				return fmt.Errorf("a sweep of %s in %s over %d points along each axis differs from the host's in the "+
					"row at y %d, z %d", c.Name, c.real, c.points, y, z)
			}
		}
	}
	return nil
}

// tuneBudget is the time limit of the search for the shape of sweeps.
const tuneBudget = 200 * time.Millisecond

// swept is two arrays on a device, and sweeps from each to the other.
type swept struct {
	*timing.Probe
	arrays [2]kernels.Array
	sweeps [2]*sweep.Launch
	normed []normed // the same, with norms
	values int64    // bytes of the owned points
}

// normed is sweeps that take norms, with one mode of sums, and their totals.
type normed struct {
	sums   sums.Mode
	sweeps [2]*sweep.Launch
	totals [2]*sweep.Totals
}

// newSwept prepares a case on the device.
func newSwept(ctx context.Context, compiler *kernels.Compiler, d *streams.Device, c sweepCase,
	open *streams.Resources) (s *swept, err error) {
	s = &swept{values: c.box().Points() * int64(c.real.Size())}
	if s.Probe, err = timing.NewProbe(compiler, d, open); err != nil {
		return nil, err
	}
	if err := s.allocate(ctx, d, c, open); err != nil {
		return nil, err
	}
	plain, err := s.tuned(compiler, d, c, sums.Fast)
	if err != nil {
		return nil, err
	}
	for i := range s.sweeps {
		streams.Into(open, &s.sweeps[i])(plain.Sweep("sweep", s.between(i), c.box()))
	}
	if err := open.Err(); err != nil {
		return nil, err
	}
	for _, mode := range c.sums {
		sweeper := plain
		if mode != sums.Fast {
			if sweeper, err = s.tuned(compiler, d, c, mode); err != nil {
				return nil, err
			}
		}
		if err := s.addNormed(sweeper, mode, c, open); err != nil {
			return nil, err
		}
	}
	return s, fillRandom(ctx, s.Stream, s.arrays[1].Data.Memory, c.real) // scratch memory of the search
}

// allocate allocates the arrays and fills them with random numbers.
func (s *swept) allocate(ctx context.Context, d *streams.Device, c sweepCase, open *streams.Resources) error {
	layout, err := c.layout()
	if err != nil {
		return err
	}
	for i := range s.arrays {
		m := open.Alloc(d, layout.Bytes())
		if err := open.Err(); err != nil {
			return err
		}
		s.arrays[i] = kernels.Array{Data: m.All(), Layout: layout}
		if err := fillRandom(ctx, s.Stream, m, c.real); err != nil {
			return err
		}
	}
	return nil
}

// between returns the arrays of the i-th sweep.
func (s *swept) between(i int) sweep.Arrays { return sweep.Arrays{{s.arrays[i]}, {s.arrays[1-i]}} }

// tuned returns a sweeper with the fastest shape for the arrays.
func (s *swept) tuned(compiler *kernels.Compiler, d *streams.Device, c sweepCase, mode sums.Mode) (*sweep.Sweeper,
	error) {
	heat, err := c.stencil()
	if err != nil {
		return nil, err
	}
	point, accesses, err := sweep.Linear(heat, c.real)
	if err != nil {
		return nil, err
	}
	point.Sums = mode
	sweeper, err := sweep.New(compiler, d, point, accesses)
	if err != nil {
		return nil, err
	}
	_, err = sweeper.Tune(s.between(0), c.box(), tuneBudget)
	return sweeper, err
}

// addNormed adds sweeps with norms.
func (s *swept) addNormed(sweeper *sweep.Sweeper, mode sums.Mode, c sweepCase, open *streams.Resources) error {
	of := normed{sums: mode}
	for i := range of.sweeps {
		launches, total, err := sweeper.Measure(s.between(i),
			sweep.Portion{Name: "sweep", Boxes: []domain.Box{c.box()}})
		if err != nil {
			return err
		}
		open.Add(total)
		of.sweeps[i], of.totals[i] = launches[0], total
	}
	s.normed = append(s.normed, of)
	return nil
}

// fillRandom fills memory with a repeated sequence of random numbers from 0 to 1.
func fillRandom(ctx context.Context, s *streams.Stream, m *streams.Memory, real domain.Element) (err error) {
	const chunk = 1 << 20
	host, err := s.Device().AllocPinned(chunk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	if real == domain.Float32 {
		fill(streams.View[float32](host.Bytes()), rng.Float32)
	} else {
		fill(streams.View[float64](host.Bytes()), rng.Float64)
	}
	for at := int64(0); at < m.Size(); at += chunk {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, s.Sync(timing.Limit))
		}
		n := min(chunk, m.Size()-at)
		if err := s.CopyAs(streams.OtherWork, m.Span(at, n), host.Span(0, n)); err != nil {
			return err
		}
	}
	return s.Sync(timing.Limit)
}

// fill sets all values.
func fill[T any](values []T, next func() T) {
	for i := range values {
		values[i] = next()
	}
}

// measurement is a kind of sweeps, with the labels of its row.
type measurement struct {
	labels results.Row
	step   func(i int) error
}

// measurements returns sweeps without norms and with norms, as requested.
func (s *swept) measurements(c sweepCase) (all []measurement) {
	for _, norms := range c.norms {
		if norms == 0 {
			all = append(all, measurement{c.labels(), s.sweep})
			continue
		}
		for _, n := range s.normed {
			labels := c.labels().Label("norms", "norms every step")
			if n.sums == sums.Reproducible {
				labels = labels.Label("sums", n.sums)
			}
			all = append(all, measurement{labels, func(i int) error { return s.sweepWithNorms(n, i) }})
		}
	}
	return all
}

// sweep queues the i-th sweep, sweepWithNorms one that takes norms, with their total, and copy a copy of the same
// number of values from one array to the other.
func (s *swept) sweep(i int) error { return s.Stream.Launch(s.sweeps[i%2].Kernel) }

func (s *swept) sweepWithNorms(n normed, i int) error {
	return errors.Join(s.Stream.Launch(n.sweeps[i%2].Kernel), n.totals[i%2].Queue(s.Stream))
}

func (s *swept) copy(i int) error {
	dst, src := s.arrays[1-i%2].Data.Memory, s.arrays[i%2].Data.Memory
	return s.Stream.CopyAs(streams.OtherWork, dst.Span(0, s.values), src.Span(0, s.values))
}
