package sparse

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed sparse.cuh
var cuda string

// Source returns CUDA C++ of an example after what it shares with others.
func Source(name, text string) kernels.Source {
	return kernels.Source{Name: name, Text: compare.Sums + cuda + text, Mirrors: []kernels.Mirror{
		{Name: "Blocks", Value: Shared{}}, {Name: "Multiply", Value: multiplyArgument{}}, {Name: "Add", Value: addArgument{}},
		{Name: "LANES", Value: lanes}, {Name: "MAX_BLOCKS", Value: maxBlocks}, {Name: "PRODUCT", Value: Product}, {Name: "RECEIVED", Value: received},
		{Name: "BROADCAST", Value: broadcastTag}, {Name: "REDUCE", Value: reduceTag},
	}}
}

// Vectors of a block: two inputs, and these. Constants of sparse.cuh.
const (
	Product  = 2
	received = 3

	lanes        = 8
	broadcastTag = 0
	reduceTag    = 1
)

// Shared is struct Blocks of sparse.cuh.
type Shared struct {
	N, Pitch, Side, Count, Iterations, Extra, Window int64
	Block                                            [maxBlocks]addresses
}

// addresses are struct Block of sparse.cuh.
type addresses struct{ Starts, Columns, Values, Vectors uint64 }

// multiplyArgument and addArgument are the structs of launches of sparse.cuh.
type (
	multiplyArgument struct {
		Block                           addresses
		In, Factor, Out, Squares, Total uint64
		N                               int64
	}
	addArgument struct {
		To, From, Squares, Total uint64
		N                        int64
	}
)

// Blocks are the blocks of a matrix on the devices of a session, as many on each, column after column.
type Blocks struct {
	*Matrix
	Session *halo.Session
	Each    int // ranks of a block
	Options compare.Options
	World   *ranks.World
	All     []*Block // at Row + Side*Column

	window    ranks.Window
	pitch     int64 // of vectors, in elements
	resources streams.Resources
}

// Block is a block on its device. Memory lies as struct Block of sparse.cuh says.
type Block struct {
	Row, Column, device              int
	starts, columns, values, vectors *streams.Memory
	pitch                            int64
	bytes                            int64 // of a vector
	extra                            int64 // where what comes after the vectors begins
}

// Vector returns a vector of the block.
func (b *Block) Vector(i int) streams.Span { return b.vectors.Span(int64(i)*8*b.pitch, b.bytes) }

// Extra returns bytes behind the vectors.
func (b *Block) Extra(offset, bytes int64) streams.Span {
	return b.vectors.Span(b.extra+offset, bytes)
}

// Bytes returns the memory of a span on a host device.
func Bytes(s streams.Span) []byte { return s.Memory.Bytes()[s.Offset:][:s.Length] }

// addresses returns the form for kernels.
func (b *Block) addresses() addresses {
	return addresses{b.starts.Address(), b.columns.Address(), b.values.Address(), b.vectors.Address()}
}

// Device returns the device of a block.
func (x *Blocks) Device(b *Block) *streams.Device { return x.Session.Devices[b.device] }

// rounds returns how many a binomial tree over a row of blocks has.
func (m *Matrix) rounds() (n int) {
	for step := 1; step < m.Side; step *= 2 {
		n++
	}
	return n
}

// Open fills the blocks of a matrix on the devices of a session, and makes the ranks of a program ready, with a window
// of the vectors of each block. extra says how many bytes a block has behind its vectors, of so many ranks.
func Open(s *halo.Session, m *Matrix, p ranks.Program, o compare.Options, extra func(each int) int64) (made *Blocks, err error) {
	perDevice := m.Side * m.Side / len(s.Devices)
	world, err := compare.World(s, p, o, perDevice, 0)
	if err != nil {
		return nil, err
	}
	x := &Blocks{Matrix: m, Session: s, World: world, Each: world.Ranks() / perDevice, Options: o, pitch: (m.N + 15) / 16 * 16}
	x.resources.Add(world)
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	for i := range m.Side * m.Side {
		b := &Block{Row: i % m.Side, Column: i / m.Side, device: i / perDevice, pitch: x.pitch, bytes: 8 * m.N, extra: 8 * x.pitch * int64(received+m.rounds())}
		x.All = append(x.All, b)
		if err := x.fill(b, extra(x.Each)); err != nil {
			return nil, err
		}
	}
	if x.window, err = world.NewWindow(ranks.All, func(rank int) streams.Span { return x.All[rank/x.Each].vectors.All() }); err != nil {
		return nil, err
	}
	return x, nil
}

// fill allocates the memory of a block, and writes its entries.
func (x *Blocks) fill(b *Block, extra int64) (err error) {
	alloc := func(bytes int64) (m *streams.Memory) {
		if err == nil {
			m, err = compare.Alloc(&x.resources, x.Device(b), bytes)
		}
		return m
	}
	// Before the host makes anything as large: a device reports that it lacks memory.
	b.starts, b.vectors = alloc(8*(x.N+1)), alloc(b.extra+max(8, extra))
	if err != nil {
		return err
	}
	entries := int64(0)
	for i := range x.N {
		entries += x.entries(int64(b.Row)*x.N+i, b.Column)
	}
	b.columns, b.values = alloc(4*max(1, entries)), alloc(8*max(1, entries))
	if err != nil {
		return err
	}
	starts := make([]int64, x.N+1)
	for i := range x.N {
		starts[i+1] = starts[i] + x.entries(int64(b.Row)*x.N+i, b.Column)
	}
	if err := compare.Fill(b.starts.All(), func(to []int64, first int64) { copy(to, starts[first:]) }); err != nil || entries == 0 {
		return err
	}
	if err := compare.Fill(b.columns.All(), func(to []int32, first int64) {
		x.eachRow(starts, b, first, int64(len(to)), func(at int64, columns []int32, _ []float64) { copyAt(to, columns, at) })
	}); err != nil {
		return err
	}
	return compare.Fill(b.values.All(), func(to []float64, first int64) {
		x.eachRow(starts, b, first, int64(len(to)), func(at int64, _ []int32, values []float64) { copyAt(to, values, at) })
	})
}

// eachRow makes the rows of a block that have some of n entries from the first on. Those of a row begin at a place that
// counts from the first, and may lie before it.
func (x *Blocks) eachRow(starts []int64, b *Block, first, n int64, f func(at int64, columns []int32, values []float64)) {
	row, found := slices.BinarySearch(starts, first)
	if !found {
		row--
	}
	var columns []int32
	var values []float64
	for ; int64(row) < x.N && starts[row] < first+n; row++ {
		columns, values = x.row(columns[:0], values[:0], int64(b.Row)*x.N+int64(row), b.Column)
		f(starts[row]-first, columns, values)
	}
}

// copyAt copies what lies within a slice, from a place that may be before it.
func copyAt[T any](to, from []T, at int64) {
	if at < 0 {
		from, at = from[min(int64(len(from)), -at):], 0
	}
	copy(to[at:], from)
}

// Shared returns what the ranks of each device get.
func (x *Blocks) Shared(iterations int) (all []Shared) {
	count := len(x.All) / len(x.Session.Devices)
	for d := range x.Session.Devices {
		s := Shared{N: x.N, Pitch: x.pitch, Side: int64(x.Side), Count: int64(count), Iterations: int64(iterations), Extra: x.All[0].extra, Window: int64(x.window.Slot())}
		for i, b := range x.All[d*count:][:count] {
			s.Block[i] = b.addresses()
		}
		all = append(all, s)
	}
	return all
}

// Reset fills the vectors of all blocks with NaN and what is behind them with zeros, and then sets inputs: input returns
// one of a block, or nil.
func (x *Blocks) Reset(input func(b *Block, i int) func(element int64) float64) error {
	for _, b := range x.All {
		if err := compare.Fill(b.vectors.Span(0, b.extra), func(to []float64, _ int64) {
			for i := range to {
				to[i] = math.NaN()
			}
		}); err != nil {
			return err
		}
		if err := compare.Fill(b.Extra(0, b.vectors.Size()-b.extra), func(to []byte, _ int64) { clear(to) }); err != nil {
			return err
		}
		for i := range 2 {
			f := input(b, i)
			if f == nil {
				continue
			}
			if err := compare.Fill(b.Vector(i), func(to []float64, first int64) {
				for k := range to {
					to[k] = f(first + int64(k))
				}
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// String says how the matrix is cut, and onto how many ranks.
func (x *Blocks) String() string {
	return fmt.Sprintf("%d x %d blocks of %d x %d elements, %d entries a row, each by %d ranks of %d threads", x.Side, x.Side, x.N, x.N, x.PerRow, x.Each, x.Options.Threads)
}

// Close frees all.
func (x *Blocks) Close() error { return x.resources.Close() }
