package solvers

import (
	"fmt"
	"runtime"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Scheme is how the sweeps and exchanges of a step are ordered over host
// threads and streams.
type Scheme string

// The schemes: first those of Sourouri et al. (ICPADS'14), of which Assisted is their own.
const (
	AutoScheme Scheme = "auto"
	Baseline   Scheme = "baseline"
	TwoStream  Scheme = "two-stream"
	Assisted   Scheme = "assisted"
	Graph      Scheme = "graph"    // as Assisted, captured once and replayed by one thread
	Fused      Scheme = "fused"    // a kernel a step and device, which stores into the neighbours' ghosts
	Resident   Scheme = "resident" // a kernel a device for many steps
)

// Schemes returns all but AutoScheme.
func Schemes() []Scheme { return []Scheme{Baseline, TwoStream, Assisted, Graph, Fused, Resident} }

// Order is how TwoStream divides its exchange into two phases.
type Order string

// The orders: LeftRight sends all that goes in + directions, then all that
// goes in - directions; Pairwise exchanges both ways within every other pair
// of neighbours, then within the pairs between.
const (
	LeftRight Order = "left-right"
	Pairwise  Order = "pairwise"
)

// Orders returns those that the scheme can be told to take; none where it has one of its
// own.
func (s Scheme) Orders() []Order {
	if s == TwoStream {
		return []Order{LeftRight, Pairwise}
	}
	return nil
}

// Choose returns the scheme itself, or for AutoScheme the one that suits the
// placement: Assisted where each of its threads can have a core, else
// TwoStream.
func Choose(s Scheme, p *halo.Placement) Scheme {
	if s != AutoScheme {
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
	if p.Devices[0].Backend == streams.Host || threads > runtime.GOMAXPROCS(0) {
		return TwoStream
	}
	return Assisted
}

// scheme is one way to order steps. Each part is driven by one worker, and
// that worker makes these calls.
type scheme interface {
	// workers returns how many workers drive how many parts each: the ranks by
	// worker.
	workers() [][]int
	// assistants starts the other threads that the scheme needs. They end when
	// stop was called for every worker, or with the group.
	assistants()
	// steps queues the steps from first to last of the worker's parts, and with norms
	// also the reductions of the change of the last. Step n reads field (n-1)%2 and writes
	// field n%2.
	steps(worker int, first, last int64, norms bool) error
	// maxSteps is how many steps may be queued at once.
	maxSteps() int64
	// stop says that the worker makes no step after n.
	stop(worker int, n int64)
	// queues returns the stream of a part that ends its steps, and the one on which the
	// norms are reduced, maybe the same.
	queues(rank int) (steps, norms *streams.Stream)
	// sync waits until all that was queued for the worker's parts is done.
	sync(worker int) error
}

// eachStep queues steps one by one.
func eachStep(first, last int64, norms bool, step func(n int64, norms bool) error) error {
	for n := first; n <= last; n++ {
		if err := step(n, norms && n == last); err != nil {
			return err
		}
	}
	return nil
}

// newScheme makes the scheme for a run.
func newScheme(s Scheme, o Order, r *run) (scheme, error) {
	switch s {
	case Baseline:
		return newBaseline(r)
	case TwoStream:
		return newTwoStream(r, o)
	case Assisted:
		return newAssisted(r)
	case Graph:
		return newGraph(r)
	case Fused:
		return newFusedScheme(r, kernels.FusedStep)
	case Resident:
		return newFusedScheme(r, kernels.ResidentSteps)
	}
	return nil, fmt.Errorf("solvers: %q is no scheme: take one of %v", s, Schemes())
}
