// Power finds the largest eigenvalue of a sparse matrix and its eigenvector by power iteration, as Kuster (2017) does
// in sections 5.6 and 5.7. The matrix is divided into square blocks; each has several device ranks, which own some of
// its rows. In an iteration the vector is broadcast down the columns of blocks, each block is multiplied with its part,
// the products are added along the rows of blocks, and column 0 sends the result back to the first row. At the same
// time the norm is computed in column 0. A device rank puts its own elements to its partners in other blocks as soon as
// it has them.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed power.cu
var cuda string

func source(threads int) kernels.Source {
	return example.Source("power.cu", cuda, threads,
		kernels.Mirror{Name: "Blocks", Value: shared{}}, kernels.Mirror{Name: "MAX_BLOCKS", Value: maxBlocks},
		kernels.Mirror{Name: "LANES", Value: lanes}, kernels.Mirror{Name: "PRODUCT", Value: vectorProduct},
		kernels.Mirror{Name: "RECEIVED", Value: vectorReceived}, kernels.Mirror{Name: "BROADCAST", Value: tagBroadcast},
		kernels.Mirror{Name: "REDUCE", Value: tagReduce}, kernels.Mirror{Name: "TRANSPOSE", Value: tagTranspose},
		kernels.Mirror{Name: "FACTORS", Value: factorsAt}, kernels.Mirror{Name: "FACTOR", Value: factorAt},
		kernels.Mirror{Name: "ROW_SUMS", Value: rowSumsAt}, kernels.Mirror{Name: "RANK_SUMS", Value: rankSumsAt},
		kernels.Mirror{Name: "PACKET", Value: packetBytes})
}

// Constants of power.cu.
const (
	lanes     = 8  // threads of a row
	maxBlocks = 64 // of a device

	// Vectors of a block: two inputs, which iterations use alternately, and these.
	vectorProduct  = 2
	vectorReceived = 3 // one for each round of the reduction

	// Tags of notifications.
	tagBroadcast = 0
	tagReduce    = 1 // and one more for each round
	tagTranspose = 64

	// Offsets of numbers that follow the vectors of a block.
	factorsAt   = 0
	factorAt    = 32
	rowSumsAt   = 128
	rankSumsAt  = 512
	packetBytes = 16
)

// shared is struct Blocks of power.cu: what the device ranks of a device share.
type shared struct {
	N, Pitch, Side, Count, Iterations, Extra, Window int64
	Block                                            [maxBlocks]addresses
}

// addresses is struct Block of power.cu.
type addresses struct{ Starts, Columns, Values, Vectors uint64 }

// matrix has side x side blocks of n x n elements. Each row of a block has perRow entries of 1, 2 and 3 with the sum 2
// perRow. So the largest eigenvalue is 2 perRow side, and its eigenvector has equal elements.
type matrix struct {
	n, perRow int64
	side      int
}

func (m matrix) rows() int64         { return m.n * int64(m.side) }
func (m matrix) eigenvalue() float64 { return float64(2 * m.perRow * int64(m.side)) }

// row appends the entries of a row in a column of blocks, from hashes: columns within the block, in order, and values.
// Each of perRow equal parts of the row has one entry.
func (m matrix) row(columns []int32, values []float64, row int64, column int) ([]int32, []float64) {
	last := 0.0
	for i := range m.perRow {
		h := example.Hash(uint64(row), uint64(i)<<16|uint64(column)|1<<15)
		lo, hi := example.Part(m.n, m.perRow, i), example.Part(m.n, m.perRow, i+1)
		columns = append(columns, int32(lo+int64(h>>33)%(hi-lo)))
		switch {
		case i%2 == 1:
			last = 4 - last
		case i == m.perRow-1:
			last = 2
		default:
			last = float64(1 + h%3)
		}
		values = append(values, last)
	}
	return columns, values
}

// apply returns the product with a vector.
func (m matrix) apply(x []float64) []float64 {
	y := make([]float64, m.rows())
	var columns []int32
	var values []float64
	for row := range y {
		for j := range m.side {
			columns, values = m.row(columns[:0], values[:0], int64(row), j)
			for i, c := range columns {
				y[row] += float64(values[i] * x[int64(j)*m.n+int64(c)])
			}
		}
	}
	return y
}

// block is a block of the matrix in compressed rows on its device, with its vectors.
type block struct {
	row, column             int
	device                  *streams.Device
	starts, columns, values *streams.Memory
	vectors, image          *streams.Memory // image is the initial content of vectors
}

// power is an iteration on some devices.
type power struct {
	*example.Setup
	matrix
	each   int // device ranks of a block
	world  *ranks.World
	all    []*block // at row + side*column
	window ranks.Window
	pitch  int64 // of vectors, in elements
	extra  int64 // offset of what follows the vectors of a block
}

func newPower(s *example.Setup, m matrix) (x *power, err error) {
	count := m.side * m.side / len(s.Devices)
	if s.Options.Ranks%count != 0 {
		return nil, fmt.Errorf("--ranks: must be a multiple of %d, the blocks of a device, got %d",
			count, s.Options.Ranks)
	}
	x = &power{Setup: s, matrix: m, pitch: (m.n + 15) / 16 * 16}
	s.Options.Multiple = count
	x.world, err = s.World(ranks.Program{
		Name: "power", Source: source(s.Threads), Kernel: "by_ranks", Host: x.byRanks,
	})
	if err != nil {
		return nil, err
	}
	x.each = x.world.Ranks() / count
	rounds := int64(math.Ceil(math.Log2(float64(m.side))))
	x.extra = 8 * x.pitch * (vectorReceived + rounds)
	for i := range m.side * m.side {
		b := &block{row: i % m.side, column: i / m.side, device: s.Devices[i/count]}
		x.all = append(x.all, b)
		if err := x.fill(b); err != nil {
			return nil, err
		}
	}
	x.window, err = x.world.NewWindow(ranks.All, func(rank int) streams.Span {
		return x.all[rank/x.each].vectors.All()
	})
	return x, err
}

// fill allocates the memory of a block and writes its entries, the initial vector and the factor 1. All other numbers
// are NaN until they are computed.
func (x *power) fill(b *block) (err error) {
	starts := make([]int64, x.n+1)
	columns, values := make([]int32, 0, x.n*x.perRow), make([]float64, 0, x.n*x.perRow)
	for row := range x.n {
		columns, values = x.row(columns, values, int64(b.row)*x.n+row, b.column)
		starts[row+1] = int64(len(columns))
	}
	vectors := slices.Repeat([]float64{math.NaN()}, int(x.extra/8))
	for i := range x.n {
		vectors[i] = first(int64(b.column)*x.n + i)
	}
	vectors = append(vectors, make([]float64, (rankSumsAt+packetBytes*x.each)/8)...)
	vectors[(x.extra+factorAt)/8] = 1
	if b.starts, err = example.Upload(x.Setup, b.device, starts); err != nil {
		return err
	}
	if b.columns, err = example.Upload(x.Setup, b.device, columns); err != nil {
		return err
	}
	if b.values, err = example.Upload(x.Setup, b.device, values); err != nil {
		return err
	}
	if b.image, err = example.Upload(x.Setup, b.device, vectors); err != nil {
		return err
	}
	b.vectors, err = x.Alloc(b.device, b.image.Size())
	return err
}

// vector is a vector of a block.
func (x *power) vector(b *block, i int) streams.Span {
	return b.vectors.Span(8*int64(i)*x.pitch, 8*x.n)
}

// first is an element of the initial vector: between 1/2 and 3/2.
func first(element int64) float64 { return 0.5 + example.Uniform(example.Hash(uint64(element), 1<<33)) }

func (x *power) String() string {
	return fmt.Sprintf("%d x %d blocks of %d x %d elements, %d entries per row, each by %d device ranks of %d threads",
		x.side, x.side, x.n, x.n, x.perRow, x.each, x.Threads)
}

// Reset sets the initial vector and the factor 1 in all blocks.
func (x *power) Reset() (err error) {
	for _, b := range x.all {
		err = errors.Join(err, example.Copy(b.device, b.vectors.All(), b.image.All()))
	}
	return err
}

func (x *power) Run(ctx context.Context, iterations int) (time.Duration, error) {
	count := len(x.all) / len(x.Devices)
	all := make([]shared, len(x.Devices))
	for d := range all {
		all[d] = shared{N: x.n, Pitch: x.pitch, Side: int64(x.side), Count: int64(count), Iterations: int64(iterations),
			Extra: x.extra, Window: int64(x.window.Slot())}
		for i, b := range x.all[d*count:][:count] {
			all[d].Block[i] = addresses{
				b.starts.Address(), b.columns.Address(), b.values.Address(), b.vectors.Address(),
			}
		}
	}
	return example.Timed(ctx, x.world, all)
}

// Values returns the eigenvalue and the vector. It is an error if blocks of a column have different copies of their
// part.
func (x *power) Values(iterations int) ([]float64, error) {
	factor, err := example.Read[float64](x.all[0].vectors.Span(x.extra+factorAt, 8))
	if err != nil {
		return nil, err
	}
	all := []float64{1 / factor[0]}
	for _, b := range x.all {
		part, err := example.Read[float64](x.vector(b, iterations%2))
		if err != nil {
			return nil, err
		}
		for i := range part {
			part[i] *= factor[0]
		}
		if b.row == 0 {
			all = append(all, part...)
		} else if !slices.Equal(part, all[1+int64(b.column)*x.n:][:x.n]) {
			return nil, fmt.Errorf("blocks of column %d have different vectors in row %d and row 0", b.column, b.row)
		}
	}
	return all, nil
}

// Check compares with an iteration by whole vectors on one core. All terms are positive, so rounding changes an element
// by a share of it that grows with the terms and the iterations (Higham 2002, 3.1); norms add that of their sums.
func (x *power) Check(values []float64, iterations int) (string, error) {
	v := make([]float64, x.rows())
	for i := range v {
		v[i] = first(int64(i))
	}
	norm := 0.0
	for range iterations {
		v, norm = x.apply(v), 0
		for _, e := range v {
			norm += e * e
		}
		norm = math.Sqrt(norm)
		for i := range v {
			v[i] /= norm
		}
	}
	bound := 4 * float64(int64(iterations)*(x.perRow*int64(x.side)+5)+x.rows()+5) * 0x1p-53
	worst := 0.0
	for i, want := range append([]float64{norm}, v...) {
		off := math.Abs(values[i]/want - 1)
		if !(off <= bound) {
			return "", fmt.Errorf("value %d is %v, the reference has %v, within %.1e",
				i, values[i], want, bound)
		}
		worst = max(worst, off)
	}
	return fmt.Sprintf("eigenvalue %.17g, %.1e from that of the matrix; all elements within %.1e of the reference",
		values[0], math.Abs(values[0]/x.eigenvalue()-1), worst), nil
}

// place is struct Place of power.cu for a device rank on a CPU device, with its functions.
type place struct {
	*ranks.Rank
	*power
	block      *block
	member     int // of the device ranks of its block
	begin, end int64
	sums       []float64 // of threads
}

func (p *place) elements(i int) []float64 {
	return streams.View[float64](p.block.vectors.Bytes()[8*int64(i)*p.pitch:][:8*p.n])
}

// multiply sets the own elements of a vector to the product of the block and factor times another.
func (p *place) multiply(out, in int, factor float64) {
	starts, columns := streams.View[int64](p.block.starts.Bytes()), streams.View[int32](p.block.columns.Bytes())
	values, x := streams.View[float64](p.block.values.Bytes()), p.elements(in)
	for row := p.begin; row < p.end; row++ {
		var sum [lanes]float64
		for i := starts[row]; i < starts[row+1]; i++ {
			sum[(i-starts[row])%lanes] += float64(values[i] * float64(factor*x[columns[i]]))
		}
		for d := lanes / 2; d > 0; d /= 2 {
			for k := range d {
				sum[k] += sum[k+d]
			}
		}
		p.elements(out)[row] = sum[0]
	}
}

// sumOfSquares is that of the own elements of a vector.
func (p *place) sumOfSquares(i int) float64 {
	clear(p.sums)
	for k, v := range p.elements(i)[p.begin:p.end] {
		p.sums[k%len(p.sums)] += float64(v * v)
	}
	return example.BlockSum(p.sums)
}

// putPart puts the own elements of a vector into a vector of the partner in another block, and notifies it.
func (p *place) putPart(row, column, to, from, tag int) {
	own := p.block.vectors.Bytes()[8*(int64(from)*p.pitch+p.begin):][:8*(p.end-p.begin)]
	at := 8 * (int64(to)*p.pitch + p.begin)
	p.PutNotify(p.window, (row+p.side*column)*p.each+p.member, at, own, tag)
}

// broadcast sends a vector down the column of blocks along a binomial tree.
func (p *place) broadcast(vector int) bool {
	step := 1
	if p.block.row > 0 {
		if !p.WaitNotifications(tagBroadcast, 1) {
			return false
		}
		for step <= p.block.row {
			step *= 2
		}
	}
	for ; p.block.row+step < p.side; step *= 2 {
		p.putPart(p.block.row+step, p.block.column, vector, vector, tagBroadcast)
	}
	return true
}

// reduce adds the products along the row of blocks, to that of column 0.
func (p *place) reduce(product int) bool {
	for step, round := 1, 0; step < p.side; step, round = 2*step, round+1 {
		if p.block.column%(2*step) == step {
			p.putPart(p.block.row, p.block.column-step, vectorReceived+round, product, tagReduce+round)
			return true
		}
		if p.block.column+step >= p.side {
			continue
		}
		if !p.WaitNotifications(tagReduce+round, 1) {
			return false
		}
		to, from := p.elements(product), p.elements(vectorReceived+round)
		for i := p.begin; i < p.end; i++ {
			to[i] += from[i]
		}
	}
	return true
}

// put sends a number to a device rank, as a packet.
func (p *place) put(to int, offset int64, v float64, number int64) {
	bytes := make([]byte, 8)
	streams.View[float64](bytes)[0] = v
	p.PutPacket(p.window, to, p.extra+offset, bytes, uint32(number))
}

// received waits for a number.
func (p *place) received(offset, number int64) float64 {
	bytes := make([]byte, 8)
	p.WaitPacket(p.block.vectors.Bytes()[p.extra+offset:][:packetBytes], bytes, uint32(number))
	return streams.View[float64](bytes)[0]
}

// byRanks is the counterpart of kernel by_ranks on CPU devices.
func (x *power) byRanks(r *ranks.Rank) {
	me, n, member := r.Index(ranks.All), int64(x.each), int64(r.Index(ranks.All)%x.each)
	p := &place{
		r, x, x.all[me/x.each], int(member), example.Part(x.n, n, member), example.Part(x.n, n, member+1),
		make([]float64, x.Threads),
	}
	row, column := p.block.row, p.block.column
	root := row+column == 0
	r.StartTimer()
	ok := true
	for t := int64(0); t < ranks.Data[shared](r).Iterations && ok; t++ {
		input, next, product := int(t%2), int(1-t%2), vectorProduct
		if root {
			product = next
		}
		if t > 0 && !r.Barrier(ranks.Device) {
			return
		}
		factor := 1.0
		if t > 0 {
			factor = p.received(factorsAt+packetBytes*(t%2), t)
		}
		p.multiply(product, input, factor)
		if !p.reduce(product) {
			return
		}
		if column == 0 {
			p.put(row*x.each, rankSumsAt+packetBytes*member, p.sumOfSquares(product), t+1)
			if row > 0 {
				p.putPart(0, row, next, product, tagTranspose)
			}
		}
		for turn := range 2 { // block 0 sends its input before it waits for sums, others after
			if (turn == 0) == root {
				ok = (row > 0 || root || r.WaitNotifications(tagTranspose, 1)) && p.broadcast(next)
			} else if column == 0 && member == 0 {
				p.lead(next, t)
			}
		}
	}
	r.Barrier(ranks.All)
	r.StopTimer()
}

// lead adds the sums of the device ranks of a block and, in block 0, those of other rows, and sends the factor.
func (p *place) lead(next int, t int64) {
	clear(p.sums)
	for i := range p.each {
		p.sums[i%len(p.sums)] += p.received(rankSumsAt+int64(packetBytes*i), t+1)
	}
	sum := example.BlockSum(p.sums)
	if row := p.block.row; row > 0 {
		p.put(0, rowSumsAt+int64(packetBytes*row), sum, t+1)
		return
	}
	for row := 1; row < p.side; row++ {
		sum += p.received(rowSumsAt+int64(packetBytes*row), t+1)
	}
	factor := 1 / math.Sqrt(sum)
	streams.View[float64](p.block.vectors.Bytes()[p.extra+factorAt:][:8])[0] = factor
	for i := range p.all {
		p.put(i*p.each, factorsAt+int64(packetBytes*next), factor, t+1)
	}
}

// newMatrix returns the matrix that the flags describe for some devices.
func newMatrix(size int64, side int, density float64, devices int) (m matrix, err error) {
	const mostEntries = 1 << 32 // of a block
	switch {
	case !(density > 0 && density <= 1):
		return m, fmt.Errorf("--density must be above 0 and up to 1, got %v", density)
	case size < 1 || density*float64(size)*float64(size) > mostEntries:
		return m, fmt.Errorf("--size must be at least 1, and up to %d entries of a block, got %d", mostEntries, size)
	}
	if side == 0 {
		for side = 1; side*side%devices != 0; side++ {
		}
	}
	if side < 1 || side > 16 || side*side%devices != 0 || side*side/devices > maxBlocks {
		return m, fmt.Errorf("--side: must be at most 16, with a multiple of %d blocks, at most %d per device, got %d",
			devices, maxBlocks, side)
	}
	return matrix{size, min(size, max(1, int64(math.Round(density*float64(size))))), side}, nil
}

func newProgram() example.Program {
	var size int64
	var side int
	var density float64
	setup := example.Setup{Iterations: 20, Options: ranks.Options{PerMultiprocessor: 4}}
	return example.Ranks("power", setup, func(f *flag.FlagSet) {
		f.Int64Var(&size, "size", 10816, "rows and columns of a block of the matrix")
		f.IntVar(&side, "side", 0, "blocks along each axis; 0: the fewest that divide evenly among the devices")
		f.Float64Var(&density, "density", 0.003, "fraction of the elements that are stored")
	}, func(s *example.Setup) (example.Problem, error) {
		m, err := newMatrix(size, side, density, len(s.Devices))
		if err != nil {
			return nil, err
		}
		return newPower(s, m)
	})
}

func main() { newProgram().Main() }
