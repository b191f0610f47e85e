package sparse

import (
	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/streams"
)

// multiply is the twin of multiply of sparse.cuh.
func (b *Block) multiply(out, in []float64, factor float64, begin, end int64) {
	starts := streams.View[int64](b.starts.Bytes())
	columns, values := streams.View[int32](b.columns.Bytes()), streams.View[float64](b.values.Bytes())
	for row := begin; row < end; row++ {
		var sum [lanes]float64
		for i := starts[row]; i < starts[row+1]; i++ {
			sum[(i-starts[row])%lanes] += float64(values[i] * float64(factor*in[columns[i]]))
		}
		for d := lanes / 2; d > 0; d /= 2 {
			for k := range d {
				sum[k] += sum[k+d]
			}
		}
		out[row] = sum[0]
	}
}

// add is the twin of add of sparse.cuh.
func add(to, from []float64, begin, end int64) {
	for i := begin; i < end; i++ {
		to[i] += from[i]
	}
}

// sumOfSquares is the twin of sum_of_squares.
func sumOfSquares(x []float64, begin, end int64, threads []float64) float64 {
	clear(threads)
	for i := begin; i < end; i++ {
		threads[(i-begin)%int64(len(threads))] += float64(x[i] * x[i])
	}
	return compare.BlockSum(threads)
}

// vector returns a vector of a block on a host device.
func (b *Block) vector(i int) []float64 { return streams.View[float64](Bytes(b.Vector(i))) }

// Place is the twin of Place of sparse.cuh, for a rank on a host device, with the functions there.
type Place struct {
	*ranks.Rank
	Block  *Block
	Member int // index of the rank among those of its block

	blocks     *Blocks
	begin, end int64
	threads    []float64
}

// Place returns where a rank is.
func (x *Blocks) Place(r *ranks.Rank) *Place {
	me, n := r.Index(ranks.All), int64(x.Each)
	member := int64(me % x.Each)
	return &Place{r, x.All[me/x.Each], int(member), x, compare.Part(x.N, n, member), compare.Part(x.N, n, member+1), make([]float64, x.Options.Threads)}
}

// Multiply sets the rank's own elements of a vector to the product of its block and factor times another.
func (p *Place) Multiply(out, in int, factor float64) {
	p.Block.multiply(p.Block.vector(out), p.Block.vector(in), factor, p.begin, p.end)
}

// Add adds the rank's own elements of a vector to those of another vector in the block's memory.
func (p *Place) Add(to []float64, from int) { add(to, p.Block.vector(from), p.begin, p.end) }

// SumOfSquares returns that of the rank's own elements of a vector.
func (p *Place) SumOfSquares(i int) float64 {
	return sumOfSquares(p.Block.vector(i), p.begin, p.end, p.threads)
}

// Window is that of all vectors of each rank's block.
func (p *Place) Window() ranks.Window { return p.blocks.window }

// PutPart is the twin of put_part.
func (p *Place) PutPart(row, column, to, from, tag int) {
	p.blocks.Options.Pause()
	own := Bytes(p.Block.Vector(from))[8*p.begin : 8*p.end]
	p.PutNotify(p.blocks.window, (row+p.blocks.Side*column)*p.blocks.Each+p.Member, 8*(int64(to)*p.blocks.pitch+p.begin), own, tag)
}

// Broadcast is the twin of broadcast.
func (p *Place) Broadcast(vector int) bool {
	step := 1
	if p.Block.Row > 0 {
		if !p.WaitNotifications(broadcastTag, 1) {
			return false
		}
		for step <= p.Block.Row {
			step *= 2
		}
	}
	for ; p.Block.Row+step < p.blocks.Side; step *= 2 {
		p.PutPart(p.Block.Row+step, p.Block.Column, vector, vector, broadcastTag)
	}
	return true
}

// Reduce is the twin of reduce.
func (p *Place) Reduce(product int) bool {
	for step, round := 1, 0; step < p.blocks.Side; step, round = 2*step, round+1 {
		if p.Block.Column%(2*step) == step {
			p.PutPart(p.Block.Row, p.Block.Column-step, received+round, product, reduceTag+round)
			return true
		}
		if p.Block.Column+step >= p.blocks.Side {
			continue
		}
		if !p.WaitNotifications(reduceTag+round, 1) {
			return false
		}
		add(p.Block.vector(product), p.Block.vector(received+round), p.begin, p.end)
	}
	return true
}
