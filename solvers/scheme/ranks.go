package scheme

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Ranks is the scheme in which each thread block of a device owns a tile of its subdomain, runs all steps of
// a round, stores points into the ghosts of others and notifies them, without the host: dCUDA's model (Gysi,
// Bär and Hoefler 2016). Norms are taken from the fields, between two launches.
const Ranks Scheme = "ranks"

func ranksScheme() *definition {
	return &definition{
		name: Ranks,
		needs: Needs{
			Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, MaxDevices: ranks.MaxDevices,
			Swept: true, Steady: true,
		},
		unfit: unranked, make: newRanks,
	}
}

const (
	ranksPerMultiprocessor = 1 // each with as many threads as registers allow
	fewestHostRanks        = 4 // per CPU device, regardless of its cores
)

// tiled is the only worker: it launches the ranks of all devices for a round, and waits for them.
type tiled struct {
	*run
	tiles *sweep.RankSteps
	world *ranks.World
	spans []sweep.RankSpan  // by device
	norms []*streams.Stream // by device; nothing else is queued
}

// unranked returns an error for steps that ranks cannot run.
func unranked(r *Runner) error {
	if err := unfused(r); err != nil {
		return err
	}
	if n := len(r.step.Stages); n != 1 {
		return fmt.Errorf("runs steps of one stage, got %d", n)
	}
	if n := len(r.place.Devices); n > ranks.MaxDevices {
		return fmt.Errorf("must have at most %d devices, got %d", ranks.MaxDevices, n)
	}
	st := &r.step.Stages[0]
	if len(st.Point.Reductions) > 0 {
		return fmt.Errorf("must have no reductions, got some in stage 0 %q", st.title())
	}
	for _, v := range r.step.Measured {
		arrays, _ := v.Spec.Arrays()
		if _, real := v.real(); !real || arrays < v.Spec.Components || v.Levels() < 2 {
			return fmt.Errorf("takes norms from fields: %q must have an array per component, %d, and two levels of "+
				"reals, got %d arrays and %d levels of %v",
				v.Spec.Name, max(1, v.Spec.Components), arrays, v.Levels(), v.Spec.Element)
		}
	}
	for _, a := range r.place.Devices {
		for _, b := range r.place.Devices {
			if reached, err := a.CanAccess(b); a != b && (err != nil || !reached) {
				return errors.Join(fmt.Errorf("needs access between all devices, got none from %v to %v", a, b), err)
			}
		}
	}
	return nil
}

func newRanks(r *run, _ Options) ([]worker, error) {
	if err := r.feed(fedSteps, (*Stage).changes); err != nil {
		return nil, err
	}
	all, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	t := &tiled{run: r}
	if t.tiles, err = sweep.NewRankSteps(all); err != nil {
		return nil, unsuited(Ranks, err)
	}
	r.resources.Add(t.tiles)
	source, err := t.tiles.Source(ranksPerMultiprocessor)
	if err != nil {
		return nil, err
	}
	program := ranks.Program{
		Name: "ranks", Source: source, Kernel: sweep.RankKernel, Threads: t.tiles.Threads(), Host: t.onHost,
	}
	options := ranks.Options{PerMultiprocessor: ranksPerMultiprocessor, Limit: r.patience()}
	devices := r.place.Devices
	if d := devices[0]; d.GoKernels {
		options.Ranks = max(fewestHostRanks, d.Cores)
	}
	for i, d := range devices { // their kernels are compiled ahead; what follows ends without those of ranks
		s, err := r.newStream(d, streams.Normal, "norms")
		if err != nil {
			return nil, err
		}
		t.norms = append(t.norms, s)
		if err := r.takeFromFields(r.subdomains[i]); err != nil {
			return nil, err
		}
	}
	t.world, err = ranks.New(r.compiler, devices, nil, program, options)
	if errors.Is(err, ranks.ErrNoRoom) {
		return nil, fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, Ranks, err)
	}
	if err != nil {
		return nil, err
	}
	r.resources.Add(t.world)
	if err := t.tiles.Cut(t.world.Ranks()); err != nil {
		return nil, err
	}
	for i := range devices {
		t.spans = append(t.spans, sweep.RankSpan{Steps: t.tiles.Table(i), Length: r.step.Length})
	}
	return []worker{t}, nil
}

// onHost runs the steps of a rank on a CPU device. rank_steps.cuh explains why it waits for nothing else.
func (t *tiled) onHost(r *ranks.Rank) {
	span, device, me := ranks.Data[sweep.RankSpan](r), r.Device(), r.Index(ranks.Device)
	partners := t.tiles.Partners(device, me)
	for n := range span.Count {
		if n > 0 && !r.WaitNotifications(int((n-1)%2), uint64(len(partners))) {
			return
		}
		t.tiles.Sweep(device, me, sweep.Moment{Step: span.Step + n, Start: span.Start, Length: span.Length})
		if n+1 == span.Count {
			return
		}
		for _, p := range partners {
			r.Notify(p, ranks.All, int(n%2))
		}
	}
}

func (t *tiled) queues() (all []queue) {
	for rank, s := range t.norms {
		all = append(all, queue{rank, s, s})
	}
	return all
}

func (t *tiled) maxQueued() int64 { return t.mostSteps() }

// steps runs the steps: norms queued before have been taken then, and these steps are finished when it
// returns.
func (t *tiled) steps(first, last int64, norms bool) error {
	for i := range t.spans {
		if err := t.frames[i].Queue(t.norms[i], t.moment(first), last-first+1); err != nil {
			return err
		}
		t.spans[i].Step, t.spans[i].Count = t.done+first, last-first+1
	}
	if err := t.sync(); err != nil {
		return err
	}
	if err := ranks.Run(context.Background(), t.world, t.spans); err != nil || !norms {
		return err
	}
	for _, d := range t.subdomains {
		s := t.norms[d.rank]
		s.BeginStep(last)
		if err := t.queueTotals(d, s, last); err != nil {
			return err
		}
	}
	return nil
}

// sync waits for the norms.
func (t *tiled) sync() error { return t.syncAll(t.norms...) }
