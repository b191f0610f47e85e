package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// stepRun is the devices on which steps are timed.
type stepRun struct {
	*opened
	cut      string        // as the flag says
	budget   time.Duration // of a row
	notes    io.Writer
	compiler *kernels.Compiler
	links    map[int]*p2p.Links // of the first so many devices
	ceiling  results.Sample     // the rate of a plain copy within a device
	record   *results.Record    // of what was measured before
}

// linksOf returns the links of the first n devices.
func (r *stepRun) linksOf(ctx context.Context, n int) (links *p2p.Links, err error) {
	if r.links[n] == nil {
		r.links[n], err = p2p.Discover(ctx, r.devices[:n], r.topology())
	}
	return r.links[n], err
}

// measureCeiling measures the rate of a plain copy within the first device, of bytes read
// and written, in GB/s: that of memory, since the arrays do not fit into a GPU's cache.
func (r *stepRun) measureCeiling() (err error) {
	d := r.devices[0]
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	bytes := int64(1 << 28)
	if d.Backend == streams.Host {
		bytes = 1 << 24
	}
	var arrays [2]*streams.Memory
	for i := range arrays {
		if arrays[i], err = d.Alloc(bytes); err != nil {
			return err
		}
		open.Add(arrays[i])
	}
	s, err := d.NewStream(streams.Normal)
	if err != nil {
		return err
	}
	open.Add(s)
	end, err := d.NewEvent()
	if err != nil {
		return err
	}
	open.Add(end)
	p := pace{first: 1, most: 400, length: 8000}
	took, err := p.measure(func(n int) (float64, error) { return copies(s, end, arrays[1].All(), arrays[0].All(), n) })
	r.ceiling = took.Under(2 * float64(bytes) / 1e3)
	return err
}

// copies makes n copies and returns the time of one in microseconds.
func copies(s *streams.Stream, end *streams.Event, dst, src streams.Span, n int) (float64, error) {
	start := time.Now()
	for range n {
		if err := s.Copy(dst, src); err != nil {
			return 0, err
		}
	}
	err := errors.Join(s.Record(end), await(end, start.Add(waitLimit)))
	return time.Since(start).Seconds() * 1e6 / float64(n), err
}

// task is a case whose row begins with these labels.
func (r *stepRun) task(labels results.Row, c stepCase) task {
	return task{labels, func(ctx context.Context) ([]results.Row, error) {
		row, err := r.measure(ctx, labels, c)
		return []results.Row{row}, err
	}}
}

// leftOut is why something cannot be measured here, which is no failure.
type leftOut struct{ error }

// cutOf cuts the grid of a case.
func (r *stepRun) cutOf(grid domain.Grid, c stepCase) (cut *domain.Decomposition, err error) {
	width, parts := domain.UniformRadius(grid.Dims, 1), c.parts
	switch {
	case parts != domain.Vec{}:
	case r.cut == cutAuto:
		parts, err = domain.AutoParts(grid, c.devices, width)
	default:
		parts = slabs(grid.Dims, c.devices)
	}
	if err == nil {
		cut, err = domain.Decompose(grid, parts)
	}
	if err == nil {
		err = cut.CheckWidth(width)
	}
	if err != nil {
		return nil, leftOut{err}
	}
	return cut, nil
}

// plan plans a case on the first of the devices, which stay open when it is over.
func (r *stepRun) plan(ctx context.Context, c stepCase) (w *setup, err error) {
	if c.points() > configs.MaxPoints {
		return nil, leftOut{fmt.Errorf("a grid of %.3g points; %.3g are possible", c.points(), float64(configs.MaxPoints))}
	}
	w = &setup{machine: r.machine, devices: r.devices[:c.devices:c.devices], compiler: r.compiler}
	if w.config, err = c.config(); err != nil {
		return nil, err
	}
	if w.problem, err = newProblem(w.config); err != nil {
		return nil, err
	}
	if w.links, err = r.linksOf(ctx, c.devices); err != nil {
		return nil, err
	}
	if w.cut, err = r.cutOf(w.problem.Grid, c); err != nil {
		return nil, err
	}
	if err := w.mapDevices(ctx); err != nil {
		return nil, err
	}
	w.scheme = scheme.Choose(c.scheme, w.place)
	if w.plan, err = halo.NewPlan(w.place, w.links, w.path(), w.problem.Field()); err != nil {
		if _, other := halo.NewPlan(w.place, w.links, p2p.Staged, w.problem.Field()); other == nil {
			err = leftOut{err} // it is the path that the links have not
		}
		return nil, err
	}
	needs, err := w.needs()
	if err != nil {
		return nil, err
	}
	if err := fit(needs); err != nil {
		return nil, leftOut{err}
	}
	return w, nil
}

// measure adds to a row what the steps of a case take. Where the scheme, a link or the
// memory does not suit the case, the row has a note that says so and no numbers.
func (r *stepRun) measure(ctx context.Context, row results.Row, c stepCase) (results.Row, error) {
	step, w, err := r.step(ctx, c)
	if why := (leftOut{}); errors.As(err, &why) {
		fmt.Fprintf(r.notes, "left out: %s: %v\n", nameOf(row), why)
		row.Note = why.Error()
		return row, nil
	}
	if err != nil {
		return row, fmt.Errorf("%s: %w", nameOf(row), err)
	}
	row = row.Label("parts", times(w.cut.Parts[:len(c.size)]))
	row.Note = c.chosen(w)
	return c.values(row, step, r.ceiling), nil
}

// nameOf names a row by its labels.
func nameOf(row results.Row) string {
	var parts []string
	for _, l := range row.Labels {
		parts = append(parts, l.Name+"="+row.Text(l.Name))
	}
	return strings.Join(parts, " ")
}

// step times the steps of a case, in microseconds, and says how it was set up.
func (r *stepRun) step(ctx context.Context, c stepCase) (step results.Sample, w *setup, err error) {
	if w, err = r.plan(ctx, c); err != nil {
		return step, nil, err
	}
	if err := w.choose(ctx, r.notes); err != nil {
		return step, nil, err
	}
	s, err := solvers.New(w.problem, w.plan, w.compiler)
	if err != nil {
		return step, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := newStepTimer(ctx, s, scheme.Options{
		Scheme: w.scheme, Order: c.order, Steps: 1 << 50, Norm: scheme.MaxNorm, Limit: waitLimit,
		CheckEvery: int64(max(1, c.norms)), History: c.norms > 0,
	})
	if errors.Is(err, scheme.ErrUnsuited) {
		err = leftOut{err}
	}
	if err != nil {
		return step, nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	step, err = l.step(ctx, r.budget)
	return step, w, err
}
