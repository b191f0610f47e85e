package sparse

import (
	"errors"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/kernels"

	"github.com/halox/halox/streams"
)

// Streams multiply by streams and events: a stream for each block, on which its product is launched and from which its
// vectors are copied to others.
type Streams struct {
	*compare.Queue
	Of []*streams.Stream // by block

	blocks   *Blocks
	launches Launches
	sent     []*streams.Event       // by block: what it copied last is there
	multiply [2][]*streams.Kernel   // by parity and block
	add      [2][][]*streams.Kernel // by parity, block and round
}

// Launches say what is multiplied. Factor, Squares and Total are those of kernel multiply_rows, and may be nil.
type Launches struct {
	Product func(b *Block, parity int) int // the vector that is set
	Factor  func(b *Block) streams.Span
	Squares func(b *Block) streams.Span // of column 0, once the product is complete
	Total   func(b *Block) streams.Span // the same
}

// NewStreams makes streams and launches ready.
func (x *Blocks) NewStreams(l Launches) (*Streams, error) {
	q := &Streams{Queue: &compare.Queue{}, blocks: x, launches: l}
	x.resources.Add(q.Queue)
	for parity := range q.add {
		q.add[parity] = make([][]*streams.Kernel, len(x.All))
	}
	for i, b := range x.All {
		d := x.Device(b)
		s, err1 := q.NewStream(d)
		sent, err2 := q.NewEvent(d)
		f, err3 := x.World.Functions(b.device, "multiply_rows", "add_rows")
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		q.Of, q.sent = append(q.Of, s), append(q.sent, sent)
		for parity := range q.multiply {
			k, err := q.newMultiply(d, b, parity, f[0])
			if err != nil {
				return nil, err
			}
			q.multiply[parity] = append(q.multiply[parity], k)
			for round := range x.rounds() {
				if k, err = q.newAdd(d, b, parity, round, f[1]); err != nil {
					return nil, err
				}
				q.add[parity][i] = append(q.add[parity][i], k)
			}
		}
	}
	return q, nil
}

// finish is what is done with a product of column 0 that is complete.
type finish struct{ squares, total streams.Span }

func (q *Streams) finish(b *Block, complete bool) (f finish) {
	if b.Column > 0 || !complete {
		return f
	}
	if q.launches.Squares != nil {
		f.squares = q.launches.Squares(b)
	}
	if q.launches.Total != nil {
		f.total = q.launches.Total(b)
	}
	return f
}

// part does it with the part of a rank, on a host device.
func (f finish) part(product []float64, rank int, begin, end int64, threads []float64) {
	if f.total.Memory != nil {
		add(streams.View[float64](Bytes(f.total)), product, begin, end)
	}
	if f.squares.Memory != nil {
		streams.View[float64](Bytes(f.squares))[rank] = sumOfSquares(product, begin, end, threads)
	}
}

// each calls f for the part of each rank of a block.
func (x *Blocks) each(f func(rank int, begin, end int64)) {
	for i := range x.Each {
		f(i, compare.Part(x.N, int64(x.Each), int64(i)), compare.Part(x.N, int64(x.Each), int64(i+1)))
	}
}

// geometry returns the grid and the thread blocks of a launch for a block.
func (x *Blocks) geometry() (grid, block [3]int) {
	return [3]int{x.Each, 1, 1}, [3]int{x.Options.Threads, 1, 1}
}

func (q *Streams) newMultiply(d *streams.Device, b *Block, parity int, f streams.Function) (*streams.Kernel, error) {
	x, product := q.blocks, q.launches.Product(b, parity)
	done := q.finish(b, x.Side == 1)
	var factor streams.Span
	if q.launches.Factor != nil {
		factor = q.launches.Factor(b)
	}
	grid, block := x.geometry()
	return kernels.Launch(d, kernels.LaunchSpec[multiplyArgument]{
		Name: "multiply", Work: streams.Sweep, Uses: []streams.Span{b.starts.All(), b.columns.All(), b.values.All(), b.vectors.All()},
		Function: f, Grid: grid, Block: block,
		Argument: multiplyArgument{b.addresses(), b.Vector(parity).Address(), factor.Address(), b.Vector(product).Address(), done.squares.Address(), done.total.Address(), x.N},
		Host: func() {
			by, threads := 1.0, make([]float64, x.Options.Threads)
			if factor.Memory != nil {
				by = streams.View[float64](Bytes(factor))[0]
			}
			x.each(func(rank int, begin, end int64) {
				b.multiply(b.vector(product), b.vector(parity), by, begin, end)
				done.part(b.vector(product), rank, begin, end, threads)
			})
		},
	})
}

func (q *Streams) newAdd(d *streams.Device, b *Block, parity, round int, f streams.Function) (*streams.Kernel, error) {
	x, product := q.blocks, q.launches.Product(b, parity)
	done := q.finish(b, round == x.rounds()-1)
	grid, block := x.geometry()
	return kernels.Launch(d, kernels.LaunchSpec[addArgument]{
		Name: "add", Work: streams.Sweep, Uses: []streams.Span{b.vectors.All()},
		Function: f, Grid: grid, Block: block,
		Argument: addArgument{b.Vector(product).Address(), b.Vector(received + round).Address(), done.squares.Address(), done.total.Address(), x.N},
		Host: func() {
			threads := make([]float64, x.Options.Threads)
			x.each(func(rank int, begin, end int64) {
				add(b.vector(product), b.vector(received+round), begin, end)
				done.part(b.vector(product), rank, begin, end, threads)
			})
		},
	})
}

// Send queues a copy of memory from the stream of a block to another, whose stream goes on when it is there.
func (q *Streams) Send(from, to int, dst, src streams.Span) error {
	return errors.Join(q.Of[from].Copy(dst, src), q.Of[from].Record(q.sent[from]), q.Of[to].Wait(q.sent[from]))
}

// Broadcast queues the copies of a vector down each column, along a binomial tree.
func (q *Streams) Broadcast(vector int) error {
	for step := 1; step < q.blocks.Side; step *= 2 {
		for from, b := range q.blocks.All {
			if b.Row >= step || b.Row+step >= q.blocks.Side {
				continue
			}
			to := from + step
			if err := q.Send(from, to, q.blocks.All[to].Vector(vector), b.Vector(vector)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Multiply queues the product of each block.
func (q *Streams) Multiply(parity int) error {
	for i, s := range q.Of {
		if err := s.Launch(q.multiply[parity][i]); err != nil {
			return err
		}
	}
	return nil
}

// Reduce queues the sums of the products of each row of blocks, along a binomial tree.
func (q *Streams) Reduce(parity int) error {
	for step, round := 1, 0; step < q.blocks.Side; step, round = 2*step, round+1 {
		for from, b := range q.blocks.All {
			if b.Column%(2*step) != step {
				continue
			}
			to := from - step*q.blocks.Side
			src := b.Vector(q.launches.Product(b, parity))
			err := errors.Join(q.Send(from, to, q.blocks.All[to].Vector(received+round), src), q.Of[to].Launch(q.add[parity][to][round]))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
