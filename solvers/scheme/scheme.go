package scheme

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Scheme is how the sweeps and exchanges of a step are ordered over host
// threads and streams.
type Scheme string

// Auto is the scheme that suits the placement, see Choose; Fastest finds it by trial.
const Auto Scheme = "auto"

// Order is how a scheme divides its exchange into two phases.
type Order string

// The orders: LeftRight sends all that goes in + directions, then all that
// goes in - directions; Pairwise exchanges both ways within every other pair
// of neighbours, then within the pairs between.
const (
	LeftRight Order = "left-right"
	Pairwise  Order = "pairwise"
)

// Needs are what a scheme says of itself, for all that offer a choice: what it needs of steps,
// plans and devices.
type Needs struct {
	Paths        []p2p.Path // it can exchange over; all where there are none
	Path         p2p.Path   // it takes where the choice is left to it; p2p.Auto where this is empty
	Orders       []Order    // it can be told to take; none where it has one of its own
	OnePerDevice bool       // every subdomain has a device of its own
	Steady       bool       // nothing that a step is given changes with time, but by its kernels
	Swept        bool       // halox sweeps the stages: it takes no kernels of the caller's own
}

// definition is a scheme.
type definition struct {
	name  Scheme
	needs Needs
	// assistants is how many threads it has beside one a subdomain, at most.
	assistants func(x *Runner) int
	// unfit returns an error if the scheme cannot run a step for other reasons than its needs.
	unfit func(x *Runner) error
	make  func(r *run, o Options) (scheme, error)
}

// definitions lists all schemes, in the order in which they are shown.
func definitions() []*definition {
	return []*definition{baselineScheme(), twoStreamScheme(), assistedScheme(), graphScheme(), fusedScheme(), residentScheme()}
}

// find returns a scheme by its name.
func find(name Scheme) (*definition, error) {
	for _, d := range definitions() {
		if d.name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("scheme: %q is no scheme: take one of %v", name, All())
}

// All returns the names of all schemes but Auto.
func All() (names []Scheme) {
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	return names
}

// NeedsOf returns what a scheme needs.
func NeedsOf(name Scheme) (Needs, error) {
	d, err := find(name)
	if err != nil {
		return Needs{}, err
	}
	return d.needs, nil
}

// ErrUnsuited says that a scheme cannot run a step on the devices it is placed on.
var ErrUnsuited = errors.New("the scheme does not suit the step")

// CheckPath returns an error, ErrUnsuited, if a scheme with these needs cannot exchange over a
// path that is asked for.
func (n Needs) CheckPath(name Scheme, path p2p.Path) error {
	if path != p2p.Auto && len(n.Paths) > 0 && !slices.Contains(n.Paths, path) {
		return fmt.Errorf("scheme: %w: %s exchanges over path %v, not %s", ErrUnsuited, name, n.Paths, path)
	}
	return nil
}

// CheckOrder returns an error, ErrUnsuited, if a scheme with these needs cannot take an order
// that is asked for.
func (n Needs) CheckOrder(name Scheme, o Order) error {
	if o != "" && !slices.Contains(n.Orders, o) {
		return fmt.Errorf("scheme: %w: %s has no order %q; it can take %q", ErrUnsuited, name, o, n.Orders)
	}
	return nil
}

// suits returns ErrUnsuited, with the reason, where the scheme cannot run the step.
func (d *definition) suits(x *Runner, o Options) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("scheme: %w: %s %w", ErrUnsuited, d.name, fmt.Errorf(format, args...))
	}
	devices := x.place.Devices
	for _, plan := range x.plans {
		if plan == nil {
			continue
		}
		for _, m := range plan.Messages {
			if devices[m.From] != devices[m.To] && len(d.needs.Paths) > 0 && !slices.Contains(d.needs.Paths, m.Path) {
				return fail("exchanges over path %v, and device %v sends to %v by path %s", d.needs.Paths, devices[m.From], devices[m.To], m.Path)
			}
		}
	}
	seen := map[*streams.Device]bool{}
	for _, device := range devices {
		if d.needs.OnePerDevice && seen[device] {
			return fail("has one subdomain a device, and %v several", device)
		}
		seen[device] = true
	}
	for v := range x.ghosts {
		if d.needs.Steady && !v.Boundary.Steady() {
			return fail("makes steps without the host, and the values at a boundary of %q change with time", v.Spec.Name)
		}
	}
	for i, st := range x.step.Stages {
		if d.needs.Steady && st.changes() {
			return fail("makes steps without the host, and what stage %d %q queues changes from step to step", i, st.Name)
		}
		if d.needs.Swept && st.Kernels != nil {
			return fail("sweeps the stages itself, and stage %d %q has kernels of its own", i, st.Name)
		}
	}
	if len(d.needs.Orders) > 0 && !slices.Contains(d.needs.Orders, o.Order) {
		return fail("has no order %q; it can take %q", o.Order, d.needs.Orders)
	}
	if d.unfit == nil {
		return nil
	}
	if err := d.unfit(x); err != nil {
		return fail("%w", err)
	}
	return nil
}

// Choose returns the scheme itself, or for Auto the one that suits the
// placement: Assisted where each of its threads can have a core, else
// TwoStream.
func Choose(s Scheme, p *halo.Placement) Scheme {
	if s != Auto && s != "" {
		return s
	}
	threads := 0
	for _, sub := range p.Subdomains {
		threads++
		for _, dir := range domain.Faces(p.Grid.Dims) {
			if _, ok := p.Neighbour(sub.Rank, dir); ok {
				threads++
			}
		}
	}
	if p.Devices[0].HostCores || threads > runtime.GOMAXPROCS(0) {
		return TwoStream
	}
	return Assisted
}

// scheme is one way to order steps. Each subdomain is driven by one worker, and
// that worker makes these calls.
type scheme interface {
	// workers returns how many workers drive how many subdomains each: the ranks by
	// worker.
	workers() [][]int
	// assistants starts the other threads that the scheme needs. They end when
	// stop was called for every worker, or with the workers.
	assistants()
	// steps queues the steps from first to last of the worker's subdomains, and with norms
	// also those of the last.
	steps(worker int, first, last int64, norms bool) error
	// maxQueued is how many steps may be queued at once.
	maxQueued() int64
	// stop says that the worker makes no step after n.
	stop(worker int, n int64)
	// queues returns the stream of a subdomain that ends its steps, and the one on which the
	// norms are reduced, maybe the same.
	queues(rank int) (steps, norms *streams.Stream)
	// sync waits until all that was queued for the worker's subdomains is done.
	sync(worker int) error
}

// alone gives every worker one rank.
func alone(n int) [][]int {
	ranks := make([][]int, n)
	for i := range ranks {
		ranks[i] = []int{i}
	}
	return ranks
}

// together gives one worker all ranks.
func together(n int) [][]int {
	all := make([]int, n)
	for rank := range all {
		all[rank] = rank
	}
	return [][]int{all}
}

// none is the number of assistants of schemes that have none.
func none(*Runner) int { return 0 }

// queueTotals queues the norms of a step.
func (r *run) queueTotals(d *subdomain, s *streams.Stream, n int64) error {
	for _, t := range d.totals[r.phase(n)] {
		if err := t.Queue(s); err != nil {
			return err
		}
	}
	return nil
}
