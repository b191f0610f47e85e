package sweep

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// tuneBudget is how long the shape of sweeps may be searched for.
const tuneBudget = 200 * time.Millisecond

// swept is two arrays on a device, and sweeps from each to the other.
type swept struct {
	*timing.Probe
	arrays [2]kernels.Array
	sweeps [2]*sweep.Launch
	normed [2]*sweep.Launch // the same with norms, whose totals these are
	norms  [2]*sweep.Totals
	values int64 // bytes of the owned points
}

// newSwept makes a case ready on the device.
func newSwept(ctx context.Context, compiler *kernels.Compiler, d *streams.Device, c sweepCase, open *streams.Resources) (s *swept, err error) {
	s = &swept{values: c.box().Points() * int64(c.real.Size())}
	if s.Probe, err = timing.NewProbe(compiler, d, open); err != nil {
		return nil, err
	}
	layout, err := c.layout()
	if err != nil {
		return nil, err
	}
	for i := range s.arrays {
		m, err := d.Alloc(layout.Bytes())
		if err != nil {
			return nil, err
		}
		open.Add(m)
		s.arrays[i] = kernels.Array{Data: m.All(), Layout: layout}
		if err := fillRandom(ctx, s.Stream, m, c.real); err != nil {
			return nil, err
		}
	}
	heat, err := c.stencil()
	if err != nil {
		return nil, err
	}
	point, accesses, err := sweep.Linear(heat, c.real)
	if err != nil {
		return nil, err
	}
	sweeper, err := sweep.New(compiler, d, point, accesses)
	if err != nil {
		return nil, err
	}
	between := func(i int) sweep.Arrays { return sweep.Arrays{{s.arrays[i]}, {s.arrays[1-i]}} }
	if _, err := sweeper.Tune(between(0), c.box(), tuneBudget); err != nil {
		return nil, err
	}
	if err := fillRandom(ctx, s.Stream, s.arrays[1].Data.Memory, c.real); err != nil { // what was tuned with
		return nil, err
	}
	for i := range s.sweeps {
		if s.sweeps[i], err = sweeper.Sweep("sweep", between(i), c.box()); err != nil {
			return nil, err
		}
		open.Add(s.sweeps[i])
		launches, total, err := sweeper.Measure(between(i), sweep.Portion{Name: "sweep", Boxes: []domain.Box{c.box()}})
		if err != nil {
			return nil, err
		}
		open.Add(total)
		s.normed[i], s.norms[i] = launches[0], total
	}
	return s, nil
}

// fillRandom fills memory with numbers from 0 to 1, the same ones again and again.
func fillRandom(ctx context.Context, s *streams.Stream, m *streams.Memory, real kernels.Real) (err error) {
	const chunk = 1 << 20
	host, err := s.Device().AllocPinned(chunk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	if real == kernels.Float32 {
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

// sweep queues the i-th sweep, sweepWithNorms the one that takes norms, with their total,
// and copy a copy of as many values from one array to the other.
func (s *swept) sweep(i int) error { return s.Stream.Launch(s.sweeps[i%2].Kernel) }

func (s *swept) sweepWithNorms(i int) error {
	return errors.Join(s.Stream.Launch(s.normed[i%2].Kernel), s.norms[i%2].Queue(s.Stream))
}

func (s *swept) copy(i int) error {
	dst, src := s.arrays[1-i%2].Data.Memory, s.arrays[i%2].Data.Memory
	return s.Stream.CopyAs(streams.OtherWork, dst.Span(0, s.values), src.Span(0, s.values))
}
