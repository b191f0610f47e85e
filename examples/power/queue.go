package main

import (
	"errors"
	"math"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/sparse"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// queue makes iterations by streams. Each block of column 0 has a second stream, for the norm, while the product is on
// its way to the first row of blocks and down the columns.
type queue struct {
	*sparse.Streams
	on       *iteration
	norms    []*streams.Stream // by row of blocks
	summed   []*streams.Event  // by row: the product and the sums of squares of its ranks are complete
	gathered []*streams.Event  // by row: block 0 has these
	factored *streams.Event    // all blocks have the factor
	factor   *streams.Kernel
}

func newQueue(p *iteration) (q *queue, err error) {
	q = &queue{on: p}
	q.Streams, err = p.NewStreams(sparse.Launches{
		Product: func(b *sparse.Block, parity int) int {
			if b.Row+b.Column == 0 {
				return 1 - parity
			}
			return sparse.Product
		},
		Factor:  func(b *sparse.Block) streams.Span { return b.Extra(factorAt, 8) },
		Squares: func(b *sparse.Block) streams.Span { return b.Extra(squaresAt(p.Each), int64(8*p.Each)) },
	})
	if err != nil {
		return nil, err
	}
	q.Iteration = q.iteration
	for _, b := range p.All[:p.Side] {
		d := p.Device(b)
		s, err1 := q.NewStream(d)
		summed, err2 := q.NewEvent(d)
		gathered, err3 := q.NewEvent(d)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		q.norms, q.summed, q.gathered = append(q.norms, s), append(q.summed, summed), append(q.gathered, gathered)
	}
	first := p.All[0]
	if q.factored, err = q.NewEvent(p.Device(first)); err != nil {
		return nil, err
	}
	q.factor, err = p.newFactor(first.Extra(squaresAt(p.Each), int64(8*p.Each*p.Side)), first.Extra(factorAt, 8))
	return q, err
}

// newFactor makes the launch of set_factor ready.
func (p *iteration) newFactor(squares, factor streams.Span) (*streams.Kernel, error) {
	d := squares.Memory.Device()
	f, err := p.World.Functions(0, "set_factor")
	if err != nil {
		return nil, err
	}
	return kernels.Launch(d, kernels.LaunchSpec[norm]{
		Name: "factor", Work: streams.Sweep, Uses: []streams.Span{squares, factor},
		Function: f[0], Grid: [3]int{1, 1, 1}, Block: [3]int{p.Options.Threads, 1, 1},
		Argument: norm{squares.Address(), factor.Address(), int64(p.Side), int64(p.Each)},
		Host: func() {
			all, threads := streams.View[float64](sparse.Bytes(squares)), make([]float64, p.Options.Threads)
			total := 0.0
			for row := range p.Side {
				total += sumInOrder(p.Each, threads, func(i int) float64 { return all[row*p.Each+i] })
			}
			streams.View[float64](sparse.Bytes(factor))[0] = 1 / math.Sqrt(total)
		},
	})
}

// iteration queues one iteration.
func (q *queue) iteration(parity int) error {
	p := q.on
	if err := errors.Join(q.Multiply(parity), q.Reduce(parity), q.norm()); err != nil {
		return err
	}
	for row := 1; row < p.Side; row++ { // the product becomes the input of the block with the same elements
		from, to := row, p.Side*row
		if err := q.Send(from, to, p.All[to].Vector(1-parity), p.All[from].Vector(sparse.Product)); err != nil {
			return err
		}
	}
	if err := q.Broadcast(1 - parity); err != nil {
		return err
	}
	for _, s := range q.Of {
		if err := s.Wait(q.factored); err != nil {
			return err
		}
	}
	return nil
}

// norm queues what sets the factor of all blocks.
func (q *queue) norm() error {
	p, bytes := q.on, int64(8*q.on.Each)
	first, leader := p.All[0], q.norms[0]
	for row, s := range q.norms {
		if err := errors.Join(q.Of[row].Record(q.summed[row]), s.Wait(q.summed[row])); err != nil {
			return err
		}
		if row == 0 {
			continue // its sums are where they belong
		}
		to, from := first.Extra(squaresAt(p.Each)+int64(row)*bytes, bytes), p.All[row].Extra(squaresAt(p.Each), bytes)
		if err := errors.Join(s.Copy(to, from), s.Record(q.gathered[row]), leader.Wait(q.gathered[row])); err != nil {
			return err
		}
	}
	if err := leader.Launch(q.factor); err != nil {
		return err
	}
	for _, b := range p.All[1:] {
		if err := leader.Copy(b.Extra(factorAt, 8), first.Extra(factorAt, 8)); err != nil {
			return err
		}
	}
	return leader.Record(q.factored)
}

// Method makes a method ready.
func (p *iteration) Method(name string) (compare.Method, error) {
	if name == compare.Ranks {
		return compare.ByRanks(p.World, p.Shared), nil
	}
	if p.queue == nil {
		q, err := newQueue(p)
		if err != nil {
			return nil, err
		}
		p.queue = q.Queue
	}
	return p.queue.Method(name), nil
}
