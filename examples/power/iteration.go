package main

import (
	"context"
	_ "embed"
	"math"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/sparse"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed power.cu
var cuda string

// source is the kernels with what they share with Go.
var source = func() kernels.Source {
	s := sparse.Source("power.cu", cuda)
	s.Mirrors = append(s.Mirrors,
		kernels.Mirror{Name: "FACTORS", Value: factorsAt}, kernels.Mirror{Name: "FACTOR", Value: factorAt},
		kernels.Mirror{Name: "ROW_SUMS", Value: rowSumsAt}, kernels.Mirror{Name: "RANK_SUMS", Value: rankSumsAt},
		kernels.Mirror{Name: "PACKET", Value: packet}, kernels.Mirror{Name: "TRANSPOSE", Value: transpose}, kernels.Mirror{Name: "Norm", Value: norm{}})
	return s
}()

// Constants of power.cu.
const (
	factorsAt  = 0
	factorAt   = 32
	rowSumsAt  = 128
	rankSumsAt = 512
	packet     = 16
	transpose  = 64
)

// norm is struct Norm of power.cu.
type norm struct {
	Squares, Factor uint64
	Rows, Ranks     int64
}

// squaresAt is where a block has the sums of squares of its ranks, and block 0 those of all rows of blocks, for set_factor.
func squaresAt(each int) int64 { return rankSumsAt + int64(packet*each) }

// iteration is a power iteration on devices.
type iteration struct {
	*sparse.Blocks
	queue    *compare.Queue    // nil until it is needed
	expected map[int][]float64 // the reference, by iterations
}

func open(s *sparse.Settings) func(ctx context.Context, session *halo.Session, o compare.Options) (compare.Problem, error) {
	return func(_ context.Context, session *halo.Session, o compare.Options) (compare.Problem, error) {
		m, err := s.Matrix(len(session.Devices), compare.Integers, true)
		if err != nil {
			return nil, err
		}
		p := &iteration{expected: map[int][]float64{}}
		program := ranks.Program{Name: "power", Source: source, Kernel: "by_ranks", Threads: o.Threads, Host: p.byRanks}
		extra := func(each int) int64 { return squaresAt(each) + int64(8*each*m.Side) }
		if p.Blocks, err = sparse.Open(session, m, program, o, extra); err != nil {
			return nil, err
		}
		return p, nil
	}
}

// sumInOrder is the twin of sum_in_order.
func sumInOrder(ranks int, threads []float64, number func(i int) float64) float64 {
	clear(threads)
	for i := range ranks {
		threads[i%len(threads)] += number(i)
	}
	return compare.BlockSum(threads)
}

// put is the twin of put_number.
func put(at *sparse.Place, to int, offset int64, v float64, number int64) {
	bytes := make([]byte, 8)
	streams.View[float64](bytes)[0] = v
	at.PutPacket(at.Window(), to, at.Block.Extra(offset, packet).Offset, bytes, uint32(number))
}

// received is the twin of received.
func received(at *sparse.Place, offset, number int64) float64 {
	bytes := make([]byte, 8)
	at.WaitPacket(sparse.Bytes(at.Block.Extra(offset, packet)), bytes, uint32(number))
	return streams.View[float64](bytes)[0]
}

// byRanks is the twin of by_ranks.
func (p *iteration) byRanks(r *ranks.Rank) {
	at, iterations := p.Place(r), ranks.Data[sparse.Shared](r).Iterations
	row, column := at.Block.Row, at.Block.Column
	root := row+column == 0
	r.StartTimer()
	ok := true
	for t := int64(0); t < iterations && ok; t++ {
		input, next, product := int(t%2), int(1-t%2), sparse.Product
		if root {
			product = next
		}
		if t > 0 && !r.Barrier(ranks.Device) {
			return
		}
		factor := 1.0
		if t > 0 {
			factor = received(at, factorsAt+packet*(t%2), t)
		}
		at.Multiply(product, input, factor)
		if !at.Reduce(product) {
			return
		}
		if column == 0 {
			put(at, row*p.Each, rankSumsAt+int64(packet*at.Member), at.SumOfSquares(product), t+1)
			if row > 0 {
				at.PutPart(0, row, next, product, transpose)
			}
		}
		for turn := range 2 {
			if (turn == 0) == root {
				ok = (row > 0 || root || r.WaitNotifications(transpose, 1)) && at.Broadcast(next)
			} else if column == 0 && at.Member == 0 {
				p.lead(at, next, t)
			}
		}
	}
	r.Barrier(ranks.All)
	r.StopTimer()
}

// lead adds up what the ranks of a block have sent, and, in block 0, what those of other rows have.
func (p *iteration) lead(at *sparse.Place, next int, t int64) {
	sum := sumInOrder(p.Each, make([]float64, p.Options.Threads), func(i int) float64 { return received(at, rankSumsAt+int64(packet*i), t+1) })
	if row := at.Block.Row; row > 0 {
		put(at, 0, rowSumsAt+int64(packet*row), sum, t+1)
		return
	}
	for row := 1; row < p.Side; row++ {
		sum += received(at, rowSumsAt+int64(packet*row), t+1)
	}
	factor := 1 / math.Sqrt(sum)
	streams.View[float64](sparse.Bytes(at.Block.Extra(factorAt, 8)))[0] = factor
	for block := range p.All {
		put(at, block*p.Each, factorsAt+int64(packet*next), factor, t+1)
	}
}
