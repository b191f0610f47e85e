package solvers

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// Scheme is how the sweeps and exchanges of a step are ordered over host
// threads and streams.
type Scheme string

// The schemes of Sourouri et al. (ICPADS'14), their own last.
const (
	AutoScheme Scheme = "auto"
	Baseline   Scheme = "baseline"
	TwoStream  Scheme = "two-stream"
	Assisted   Scheme = "assisted"
)

// Schemes returns all but AutoScheme.
func Schemes() []Scheme { return []Scheme{Baseline, TwoStream, Assisted} }

// ErrUnsuited says that a scheme cannot run a problem on the devices it is placed on.
var ErrUnsuited = errors.New("the scheme does not suit the problem")

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
	// stop was called for every worker, or with the crew.
	assistants()
	// step queues step n of the worker's parts, and with norms also the
	// reductions of its change. Step n reads field (n-1)%2 and writes field n%2.
	step(worker int, n int64, norms bool) error
	// stop says that the worker makes no step after n.
	stop(worker int, n int64)
	// stream returns the stream of a part on which the norms are reduced.
	stream(rank int) *streams.Stream
	// sync waits until all that was queued for the worker's parts is done.
	sync(worker int) error
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
	}
	return nil, fmt.Errorf("solvers: %q is no scheme: baseline, two-stream or assisted", s)
}
