package scheme

import (
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// Assisted is the scheme of Sourouri et al. (2014): each device has a main thread with a stream that sweeps
// the interior, and for each neighbor an assistant thread with streams that sweep the part of the boundary
// region at that neighbor, send it, and receive. All messages, in both directions, move in one phase. With
// order Serial the main thread sweeps the boundary region, and then the interior, on its stream.
const Assisted Scheme = "assisted"

func assistedScheme() *definition {
	return &definition{
		name: Assisted, needs: Needs{Orders: []Order{Concurrent, Serial}, Groups: true, Processes: true},
		assistants: (*Runner).neighbors, make: newAssisted,
	}
}

// assisted is the main thread of a subdomain with its assistants.
//
// Both sweeps of a stage read, and overwrite points read by, both sweeps of the previous stage. So the
// interior is swept after all parts of the previous stage, and a part after what the main thread has queued
// before: it waits for both by one event. A part also waits for the ghosts that it reads. It is sent when the
// other parts in its messages have been swept too. The main thread alone sweeps the stages within a group of
// steps, which have no interior.
type assisted struct {
	*assistants
	compute *streams.Stream
	parts   bool  // assistants sweep the boundary region
	joined  int64 // number of exchanges whose parts the stream waits for
}

// neighbors returns the number of assistants of all subdomains.
func (r *Runner) neighbors() (n int) {
	for _, rank := range r.local {
		n += len(r.subdomains[rank].neighbors(r))
	}
	return n
}

func newAssisted(r *run, o Options) ([]worker, error) {
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	return r.onePerSubdomain(func(d *subdomain) (_ worker, err error) {
		a, name := &assisted{parts: o.Order == Concurrent && len(d.neighbors(r.Runner)) > 0}, "compute"
		if a.parts {
			name = "interior"
		}
		if a.compute, err = r.newStream(d.device, streams.Normal, "%s", name); err != nil {
			return nil, err
		}
		if a.assistants, err = r.newAssistants(d, d.neighbors(r.Runner), a.parts); err != nil || !a.parts {
			return a, err
		}
		return a, a.divide()
	})
}

// divide gives each assistant its part of the boundary region.
func (a *assisted) divide() error {
	whole := a.subdomain
	a.subdomain = &subdomain{rank: whole.rank, device: whole.device, out: whole.out, in: whole.in}
	a.run.resources.Add(a.subdomain)
	swept := make([][]domain.Box, len(a.all))
	for _, stages := range whole.stages {
		stages = slices.Clone(stages)
		for _, h := range a.all {
			for norms := range h.part {
				h.part[norms] = append(h.part[norms], make([]Launch, len(stages)))
			}
		}
		for i := range stages {
			boxes, err := a.divideStage(i, len(a.stages), &stages[i])
			if err != nil {
				return err
			}
			for k := range boxes {
				swept[k] = append(swept[k], boxes[k]...)
			}
		}
		a.stages = append(a.stages, stages)
	}
	a.findPartners(swept)
	_, err := a.takeTotals(whole, func(phase, stage int) []*sweep.Totals {
		return []*sweep.Totals{a.stages[phase][stage].totals[0]}
	})
	a.totals = whole.totals
	return err
}

// divideStage makes the sweeps of a stage by parts and returns their boxes, by assistant. Slabs that face no
// neighbor are of the first part. It is the whole boundary region of stages with user kernels, and of stages
// with ghosts outside of physical boundaries that follow from it, since messages may contain these.
func (a *assisted) divideStage(stage, phase int, made *stageLaunches) (boxes [][]domain.Box, err error) {
	boxes = make([][]domain.Box, len(a.all))
	st := &a.step.Stages[stage]
	switch {
	case made.boxes.grown:
		return boxes, nil
	case st.Point == nil || a.follows(st):
		boxes[0] = made.boxes.boundary
		for norms, s := range []sweeps{made.plain, made.measured} {
			a.all[0].part[norms][phase][stage] = a.alone(stage, s.boundary)
		}
		return boxes, nil
	}
	for i, box := range made.boxes.boundary {
		neighbor, _ := a.place.Neighbor(a.rank, made.boxes.sides[i])
		of := max(0, slices.IndexFunc(a.all, func(h *assistant) bool { return h.neighbor == neighbor }))
		boxes[of] = append(boxes[of], box)
	}
	regions := made.regions()[1:2]
	for i, h := range a.all {
		regions = append(regions, region{
			"sweep boundary", boxes[i], &h.part[0][phase][stage], &h.part[1][phase][stage],
		})
	}
	made.totals[0], err = a.pointLaunches(a.Runner, st, made, regions)
	return boxes, err
}

// follows reports whether ghosts of a stage's variables follow from points that it sweeps, or that neighbors
// send, or from the time.
func (a *assisted) follows(st *Stage) bool {
	for access := range st.accesses {
		if g := a.ghosts[access.Variable]; g != nil && g[0].Follows(a.rank) {
			return true
		}
	}
	return false
}

// alone is a launch of the whole boundary region of a stage, with the ghosts that follow.
func (a *assisted) alone(stage int, boundary Launch) Launch {
	return func(s *streams.Stream, step int64, _ float64) error {
		return a.sweepBoundary(s, boundary, stage, step-a.done)
	}
}

// sweepBoundary queues the sweep of the whole boundary region of a stage, with the ghosts that it reads and
// those that follow from it.
func (a *assisted) sweepBoundary(s *streams.Stream, boundary Launch, stage int, n int64) error {
	if err := a.complete(a.subdomain, s, stage, n); err != nil {
		return err
	}
	if err := a.launch(s, boundary, n); err != nil {
		return err
	}
	return a.refresh(a.subdomain, s, stage, n)
}

// findPartners finds which assistants wait for each other, from the boxes that each sweeps in any stage. Points
// that differ by the radius of the step, and by a point that is staggered, count as one.
func (a *assisted) findPartners(swept [][]domain.Box) {
	reach := domain.UniformRadius(3, 1)
	for i := range a.step.Stages {
		reach = reach.Max(radiusOf(a.step.Stages[i].Reads))
	}
	for _, h := range a.all {
		exchanged := a.exchangedBoxes(h)
		for i, other := range a.all {
			meets := func(part domain.Box) bool {
				part = part.Grow(reach)
				return slices.ContainsFunc(exchanged, func(b domain.Box) bool { return !b.Intersect(part).Empty() })
			}
			if other == h || slices.ContainsFunc(swept[i], meets) {
				h.partners, other.reads = append(h.partners, other), append(other.reads, h)
			}
		}
	}
}

// exchangedBoxes returns the points that an assistant sends, and the ghosts that it receives.
func (a *assisted) exchangedBoxes(h *assistant) (all []domain.Box) {
	for stage := range a.plans {
		messages := a.messagesOf(stage)
		for _, i := range h.out[stage] {
			for _, p := range messages[i].Parts {
				all = append(all, p.Send)
			}
		}
		for _, i := range h.in[stage] {
			for _, p := range messages[i].Parts {
				all = append(all, p.Ghost)
			}
		}
	}
	return all
}

func (a *assisted) queues() []queue { return []queue{{a.rank, a.compute, a.compute}} }

func (a *assisted) steps(first, last int64, norms bool) error {
	for n := first; n <= last; n++ {
		a.compute.BeginStep(n)
		for stage := range a.step.Stages {
			if err := a.stage(stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitParts makes the main thread's stream wait for the parts of the stage that was begun last.
func (a *assisted) awaitParts() error {
	if !a.parts || a.joined == a.issued {
		return nil
	}
	a.joined = a.issued
	for _, h := range a.all {
		if err := h.swept.Wait(a.threads, a.compute, a.issued); err != nil {
			return err
		}
	}
	return nil
}

// stage is the main thread's part of a stage.
func (a *assisted) stage(stage int, n int64, norms bool) error {
	if err := a.awaitParts(); err != nil {
		return err
	}
	swept := a.sweeps(a.run, stage, n, norms)
	parts := a.parts && a.sends(stage, n)
	if !parts {
		if _, err := a.await(a.compute, stage, n); err != nil {
			return err
		}
		if err := a.sweepBoundary(a.compute, swept.boundary, stage, n); err != nil {
			return err
		}
		if err := a.giveCredit(a.in[stage], a.compute, stage, n); err != nil {
			return err
		}
	}
	a.norms = norms
	if err := a.announce(a.compute, stage, n); err != nil {
		return err
	}
	if err := a.launch(a.compute, swept.interior, n); err != nil {
		return err
	}
	if !norms || stage < len(a.step.Stages)-1 {
		return nil
	}
	if err := a.awaitParts(); err != nil {
		return err
	}
	return a.queueTotals(a.subdomain, a.compute, n)
}

func (a *assisted) sync() error {
	if err := a.assistants.sync(); err != nil {
		return err
	}
	return a.syncAll(a.compute)
}
