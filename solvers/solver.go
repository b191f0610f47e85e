package solvers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Norm is how the change of a step is measured against the tolerance.
type Norm string

// The norms: the largest absolute change, or the root of the sum of its
// squares, over owned points.
const (
	MaxNorm Norm = "max"
	L2Norm  Norm = "l2"
)

// Options say how a problem is run.
type Options struct {
	Scheme     Scheme
	Order      Order   // of TwoStream
	Iterations int64   // at most
	Tolerance  float64 // the run ends when the change is at most this; 0 for never
	Norm       Norm
	CheckEvery int64 // steps between two looks at the norms, at least 1
	History    bool  // keep the norms of every look
	// Limit is how long a worker waits for another, or for a device, before the
	// run ends with an error that says whom it waited for.
	Limit time.Duration
	// Progress, where set, is called some fifty times a second with the number
	// of steps queued. It must return at once.
	Progress func(steps int64)
	// Interval, where set, cuts the run into intervals, to time steps without what begins and ends
	// a run. It is called before the first step, with zeros, and at the end of each interval,
	// when the devices have done all of it, with its steps and the time that they took.
	// It returns how many steps the next interval has; after 0 the run ends with one more. All
	// threads wait meanwhile, no longer than Limit. The first interval also starts the threads.
	Interval func(steps int64, took time.Duration) int64

	anything bool // the fields may hold anything: norms that are not finite do not end the run
}

// Checks reports whether norms are taken before the end of the run, every CheckEvery steps.
func (o Options) Checks() bool { return o.Tolerance > 0 || o.History }

// Stopped says why a run ended.
type Stopped string

// The reasons. A run has diverged when its norms are no longer finite.
const (
	StoppedIterations  Stopped = "iterations"
	StoppedTolerance   Stopped = "tolerance"
	StoppedInterrupted Stopped = "interrupted"
	StoppedDiverged    Stopped = "diverged"
)

// Norms are those of one step, over owned points.
type Norms struct {
	Iteration int64
	MaxChange float64 // largest absolute change
	L2Change  float64 // root of the sum of squares of the change
	Max       float64 // largest magnitude
	L2        float64 // root of the mean of squares
}

// Result is what a run came to.
type Result struct {
	Iterations int64
	Stopped    Stopped
	Norms      Norms // of the last step
	History    []Norms
	Loop       time.Duration // from the first step queued to the last one done
	Bytes      int64         // sent from device to device
}

// Solver is a problem made ready on its devices.
type Solver struct {
	resources streams.Resources
	problem   *Problem
	plan      *halo.Plan
	fields    [2]*halo.Field     // step n writes field n%2
	exchanges [2]*halo.Exchanger // of each field
	parts     []*part
	compiler  *kernels.Compiler
	done      int64 // steps
	ran       bool
}

// New makes a problem ready on the devices of a plan: it compiles, allocates and
// fills the fields. The plan is one for p.Field() alone. Close frees what New made.
func New(p *Problem, plan *halo.Plan, c *kernels.Compiler) (s *Solver, err error) {
	if s, err = newUnfilled(p, plan, c); err != nil {
		return nil, err
	}
	if p.Real == kernels.Float32 {
		err = fill[float32](s.fields[0], p)
	} else {
		err = fill[float64](s.fields[0], p)
	}
	if err == nil {
		err = halo.CopyTo(s.fields[1], s.fields[0])
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newUnfilled makes a problem ready but for its fields, which hold anything.
func newUnfilled(p *Problem, plan *halo.Plan, c *kernels.Compiler) (s *Solver, err error) {
	if err := p.check(plan); err != nil {
		return nil, err
	}
	s = &Solver{problem: p, plan: plan, compiler: c}
	pl := plan.Placement
	defer func() {
		if err != nil {
			s, err = nil, errors.Join(err, s.Close())
		}
	}()
	for i := range s.fields {
		if s.fields[i], err = halo.NewField(pl, p.Field()); err != nil {
			return s, err
		}
		s.resources.Add(s.fields[i])
		if s.exchanges[i], err = halo.NewExchanger(plan, c, s.fields[i]); err != nil {
			return s, err
		}
		s.resources.Add(s.exchanges[i])
	}
	for rank := range pl.Subdomains {
		t, err := newPart(rank, p, s.plan, s.fields, c)
		if err != nil {
			return s, err
		}
		s.resources.Add(t)
		s.parts = append(s.parts, t)
	}
	return s, nil
}

// Plan returns the messages of a step.
func (s *Solver) Plan() *halo.Plan { return s.plan }

// Tuning returns in which shape the first device sweeps, and the time that all devices
// took to find theirs out.
func (s *Solver) Tuning() (first kernels.Tuning, took time.Duration) {
	for _, p := range s.parts {
		took += p.tuning.Took
	}
	return s.parts[0].tuning, took
}

// Field returns the field as the last step left it.
func (s *Solver) Field() *halo.Field { return s.fields[s.done%2] }

// run is one run of a solver: what a scheme needs. What a scheme makes it adds
// to the run's resources.
type run struct {
	resources streams.Resources
	*Solver
	group *streams.WorkerGroup
}

// patience is how long a worker waits for its own device: less than others
// wait for the worker, so that the error that comes first names the device.
func (r *run) patience() time.Duration { return r.group.Limit() / 2 }

// newStream makes a stream of the run, which traces call by that name.
func (r *run) newStream(d *streams.Device, priority streams.Priority, name string, args ...any) (*streams.Stream, error) {
	s, err := d.NewStream(priority)
	if err != nil {
		return nil, err
	}
	r.resources.Add(s)
	s.SetName(name, args...)
	return s, nil
}

// newEvents makes events of the run.
func (r *run) newEvents(d *streams.Device, events ...**streams.Event) error {
	for _, e := range events {
		made, err := d.NewEvent()
		if err != nil {
			return err
		}
		r.resources.Add(made)
		*e = made
	}
	return nil
}

// Run steps until the options or the context say stop. A context that ends is
// no error: the run then stops between two steps. After an error the fields
// hold no whole step. A solver runs once.
func (s *Solver) Run(ctx context.Context, o Options) (Result, error) {
	if o.Iterations < 1 || o.CheckEvery < 1 || o.Limit <= 0 || !(o.Tolerance >= 0) {
		return Result{}, fmt.Errorf("solvers: %d iterations, checks every %d, tolerance %v, limit %v", o.Iterations, o.CheckEvery, o.Tolerance, o.Limit)
	}
	if s.ran {
		return Result{}, fmt.Errorf("solvers: a solver runs once")
	}
	s.ran = true
	scheme, threads := Choose(o.Scheme, s.plan.Placement), len(s.parts)
	if scheme == Assisted {
		threads += len(s.plan.Messages)
	}
	r := &run{Solver: s, group: streams.NewWorkerGroup(threads, o.Limit)}
	s.resources.Add(&r.resources)
	sch, err := newScheme(scheme, o.Order, r)
	if err != nil {
		return Result{}, err
	}
	workers := sch.workers()
	c := newController(ctx, o, s.problem.Grid.Points(), len(workers), len(s.parts), sch.maxSteps(), r.group)
	var followed []*fences
	for _, ranks := range workers {
		m, err := r.newFences(sch, ranks)
		if err != nil {
			return Result{}, err
		}
		followed = append(followed, m)
	}
	start := time.Now()
	sch.assistants()
	for w, m := range followed {
		r.group.Go(fmt.Sprintf("main thread %d", w), func() error { return r.work(sch, c, w, m) })
	}
	err = r.group.Wait()
	c.result.Loop = time.Since(start)
	s.done = c.result.Iterations
	c.result.Bytes = c.result.Iterations * s.plan.Bytes()
	if err != nil {
		return c.result, err // closing now would wait for streams that may hang
	}
	return c.result, r.Close()
}

// work is the loop of one worker.
func (r *run) work(sch scheme, c *controller, w int, m *fences) (err error) {
	next := c.round
	defer func() {
		if err != nil && !errors.Is(err, streams.ErrStopped) {
			err = fmt.Errorf("subdomains %v, in steps %d to %d: %w", m.ranks, next.first, next.last, err)
		}
	}()
	for next.last >= next.first || c.due() > 0 {
		if next.last >= next.first {
			if err := sch.steps(w, next.first, next.last, next.check); err != nil {
				return err
			}
		}
		if err := m.pass(r, next); err != nil {
			return err
		}
		if next.drain {
			m.drain(r)
			if err := sch.sync(w); err != nil {
				return err
			}
		}
		if step := c.due(); step > 0 {
			if err := m.collectNorms(r, c, step); err != nil {
				return err
			}
		}
		after, err := c.barrier(w)
		if err != nil {
			return err
		}
		next = after
	}
	sch.stop(w, next.last)
	return sch.sync(w)
}

// Deviation compares the field with an exact solution, an expression that may
// depend on t.
func (s *Solver) Deviation(exact *stencil.Expression) (Deviation, error) {
	if s.problem.Real == kernels.Float32 {
		return deviation[float32](s.Field(), s.problem, exact, s.done)
	}
	return deviation[float64](s.Field(), s.problem, exact, s.done)
}

// Read copies the owned points of box to dst, x fastest without gaps.
func (s *Solver) Read(dst []float64, box domain.Box) error {
	if s.problem.Real == kernels.Float64 {
		return halo.Read(dst, s.Field(), box)
	}
	narrow := make([]float32, len(dst))
	err := halo.Read(narrow, s.Field(), box)
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return err
}

// Close frees what it holds. Closing twice is no error.
func (s *Solver) Close() error { return s.resources.Close() }

// Close frees what it holds. Closing twice is no error.
func (r *run) Close() error { return r.resources.Close() }
