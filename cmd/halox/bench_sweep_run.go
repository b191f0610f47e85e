package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// sweepRun is the device that sweeps are timed on, and how.
type sweepRun struct {
	device   *streams.Device
	compiler *kernels.Compiler
	pace     pace
}

// tuneBudget is how long the shape of sweeps may be searched for.
const tuneBudget = 200 * time.Millisecond

// maxSweeps is how many are queued behind a gate: with norms four operations each.
const maxSweeps = maxQueued / 4

// sweepCase is a stencil over a grid of so many points along each axis.
type sweepCase struct {
	shape
	real   kernels.Real
	points int
	norms  []string
}

// labels begins the rows of a case.
func (c sweepCase) labels() results.Row {
	grid := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%dx", c.points), c.dims()), "x")
	return results.NewRow().Label("stencil", c.name).Label("precision", c.real).Label("points", c.points).Label("grid", grid)
}

// operations returns those of a point.
func (c sweepCase) operations() int {
	s, err := c.stencil()
	if err != nil {
		return 0 // it was swept, so there is none
	}
	return flops(s)
}

func (c sweepCase) dims() int { return len(c.spacing) }

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

// measure returns a row without norms and one with them, as is wanted; a row that says so
// where the arrays do not fit into the device.
func (r *sweepRun) measure(ctx context.Context, c sweepCase) (rows []results.Row, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	if why, err := r.tooLarge(c); why != "" || err != nil {
		row := c.labels()
		row.Note = why
		return []results.Row{row}, err
	}
	s, err := r.newSwept(c, &open)
	if err != nil {
		return nil, err
	}
	checked := r.device.Backend != streams.Host && c.box().Points() <= maxSweptPoints
	if checked {
		if err := r.compare(c, s); err != nil {
			return nil, err
		}
	}
	plain, err := r.time(s, s.copy)
	if err != nil {
		return nil, err
	}
	for _, norms := range c.norms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, step := c.labels(), s.sweep
		if norms == withNorms {
			row, step = row.Label("norms", "norms every step"), s.sweepWithNorms
		}
		took, err := r.time(s, step)
		if err != nil {
			return nil, err
		}
		row = c.rated(row, took, plain)
		row.Checked = checked
		rows = append(rows, row)
	}
	return rows, nil
}

// tooLarge says why the arrays of a case have no room on the device, "" if they have.
func (r *sweepRun) tooLarge(c sweepCase) (why string, err error) {
	const spare = 64 << 20 // for what else a case needs
	layout, err := c.layout()
	if err != nil {
		return "", err
	}
	free, total, err := r.device.MemoryInfo()
	if need := 2 * layout.Bytes(); err == nil && total > 0 && need > free-spare {
		why = fmt.Sprintf("its arrays take %s, and %s of memory are free", p2p.Size(need), p2p.Size(free))
	}
	return why, err
}

// rated adds to a row the time of a sweep and what follows of it.
func (c sweepCase) rated(row results.Row, took, plain results.Sample) results.Row {
	points := float64(c.box().Points())
	return row.Value(results.Updates, took.Under(points*1e6)).
		Value(results.GFLOPS, took.Under(points*float64(c.operations())/1e3)).
		Join(results.NewRow().Transfer(2*c.box().Points()*int64(c.real.Size()), took, plain))
}

// swept is two arrays on a device, and sweeps from each to the other.
type swept struct {
	*latencyProbe
	arrays [2]kernels.Array
	sweeps [2]*streams.Kernel
	normed [2]*streams.Kernel // the same with norms, whose totals these are
	norms  [2]*kernels.NormReduction
	values int64 // bytes of the owned points
}

// newSwept makes a case ready on the device.
func (r *sweepRun) newSwept(c sweepCase, open *streams.Resources) (s *swept, err error) {
	s = &swept{values: c.box().Points() * int64(c.real.Size())}
	if s.latencyProbe, err = newLatencyProbe(r.compiler, r.device, open); err != nil {
		return nil, err
	}
	layout, err := c.layout()
	if err != nil {
		return nil, err
	}
	for i := range s.arrays {
		m, err := r.device.Alloc(layout.Bytes())
		if err != nil {
			return nil, err
		}
		open.Add(m)
		s.arrays[i] = kernels.Array{Data: m.All(), Layout: layout}
		if err := fillRandom(s.stream, m, c.real); err != nil {
			return nil, err
		}
	}
	heat, err := c.stencil()
	if err != nil {
		return nil, err
	}
	sweeper, err := r.compiler.NewSweeper(r.device, heat, c.real)
	if err != nil {
		return nil, err
	}
	if _, err := sweeper.Tune(s.arrays[1], s.arrays[0], c.box(), tuneBudget); err != nil {
		return nil, err
	}
	if err := fillRandom(s.stream, s.arrays[1].Data.Memory, c.real); err != nil { // what was tuned with
		return nil, err
	}
	for i := range s.sweeps {
		dst, src := s.arrays[1-i], s.arrays[i]
		if s.sweeps[i], err = sweeper.Sweep(dst, src, c.box()); err != nil {
			return nil, err
		}
		open.Add(s.sweeps[i])
		launches, total, err := sweeper.Measure(dst, src, kernels.BoxSet{Name: "sweep", Boxes: []domain.Box{c.box()}})
		if err != nil {
			return nil, err
		}
		open.Add(total)
		s.normed[i], s.norms[i] = launches[0], total
	}
	return s, nil
}

// fillRandom fills memory with numbers from 0 to 1, the same ones again and again.
func fillRandom(s *streams.Stream, m *streams.Memory, real kernels.Real) (err error) {
	const chunk = 1 << 20
	host, err := s.Device().AllocPinned(chunk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	if real == kernels.Float32 {
		for i := range streams.View[float32](host.Bytes()) {
			streams.View[float32](host.Bytes())[i] = rng.Float32()
		}
	} else {
		for i := range streams.View[float64](host.Bytes()) {
			streams.View[float64](host.Bytes())[i] = rng.Float64()
		}
	}
	for at := int64(0); at < m.Size(); at += chunk {
		n := min(chunk, m.Size()-at)
		if err := s.CopyAs(streams.OtherWork, m.Span(at, n), host.Span(0, n)); err != nil {
			return err
		}
	}
	return s.Sync(waitLimit)
}

// sweep queues the i-th sweep, sweepWithNorms the one that takes norms, with their total,
// and copy a copy of as many values from one array to the other.
func (s *swept) sweep(i int) error { return s.stream.Launch(s.sweeps[i%2]) }

func (s *swept) sweepWithNorms(i int) error {
	return errors.Join(s.stream.Launch(s.normed[i%2]), s.norms[i%2].Queue(s.stream))
}

func (s *swept) copy(i int) error {
	dst, src := s.arrays[1-i%2].Data.Memory, s.arrays[i%2].Data.Memory
	return s.stream.CopyAs(streams.OtherWork, dst.Span(0, s.values), src.Span(0, s.values))
}

// time returns the time of one step. Two are made before any gate is shut.
func (r *sweepRun) time(s *swept, step func(i int) error) (us results.Sample, err error) {
	steps := func(n int) error {
		for i := range n {
			if err := step(i); err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(steps(2), s.stream.Sync(waitLimit)); err != nil {
		return us, err
	}
	return r.pace.measure(func(n int) (float64, error) { return s.gated(n, func() error { return steps(n) }) })
}

// maxSweptPoints is up to where sweeps are compared with the host's.
const maxSweptPoints = 4 << 20

// compare has the device and a host device sweep the same numbers, and compares the bits.
func (r *sweepRun) compare(c sweepCase, s *swept) (err error) {
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, streams.CloseAll(devices)) }()
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	twin := &sweepRun{device: devices[0], compiler: r.compiler}
	want, err := twin.newSwept(c, &open)
	if err != nil {
		return err
	}
	got, err := newMirror(r.device, s.arrays[1].Data, &open)
	if err != nil {
		return err
	}
	err = errors.Join(want.sweep(0), want.stream.Sync(waitLimit), s.sweep(0), got.download(s.stream), s.stream.Sync(waitLimit))
	if err != nil {
		return err
	}
	return c.sameOwned(got.bytes(), want.arrays[1].Data.Memory.Bytes(), s.arrays[1].Layout)
}

// sameOwned returns an error that names the first row of owned points that differs.
func (c sweepCase) sameOwned(got, want []byte, l domain.Layout) error {
	size := int64(c.real.Size())
	for z := range c.box().Hi[2] {
		for y := range c.box().Hi[1] {
			from := l.Offset(domain.Vec{0, y, z}) * size
			to := from + int64(c.points)*size
			if !bytes.Equal(got[from:to], want[from:to]) {
				return fmt.Errorf("a sweep of %s in %s over %d points along each axis differs from the host's in the row at y %d, z %d", c.name, c.real, c.points, y, z)
			}
		}
	}
	return nil
}
