// Package reduce reduces the values of a field: a NormReducer computes the norms of a convergence check, of a
// field and the previous one, and a Reducer computes sums, minima and maxima.
package reduce

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// launches are prepared launches that run one after the other, and their memory.
type launches struct {
	resources streams.Resources
	all       []*streams.Kernel
	result    *streams.Memory // on the device: the results, then partial results
	host      *streams.Memory // pinned: the results
}

// allocate allocates memory for results, and on the device also for partial results.
func (l *launches) allocate(d *streams.Device, results, partial int64) error {
	l.result, l.host = l.resources.Alloc(d, results+partial), l.resources.AllocPinned(d, results)
	return l.resources.Err()
}

// prepare prepares the launches, which use memory besides their own. On CPU devices those without a Go form are
// omitted: the others do everything.
func (l *launches) prepare(d *streams.Device, name string, specs []streams.KernelSpec, uses ...streams.Span) error {
	for _, spec := range specs {
		if d.GoKernels && spec.Run == nil && spec.RunWith == nil {
			continue
		}
		spec.Name, spec.Uses = name, append(uses[:len(uses):len(uses)], l.result.All())
		k, err := launch.New(d, spec)
		if err != nil {
			return err
		}
		l.resources.Add(k)
		l.all = append(l.all, k)
	}
	return nil
}

// Queue queues the launches and the copy of their results to the host.
func (l *launches) Queue(s *streams.Stream) error {
	for _, k := range l.all {
		if err := s.Launch(k); err != nil {
			return err
		}
	}
	return s.CopyAs(streams.OtherWork, l.host.All(), l.result.Span(0, l.host.Size()))
}

// Close frees the memory. Closing twice is allowed.
func (l *launches) Close() error { return l.resources.Close() }

// Op is an operation of a Reducer on the values of a box.
type Op string

// The operations. A NaN among real values makes all totals NaN. Integer sums wrap. Sums of reals, and of squares,
// are computed in float64.
const (
	Sum     Op = "sum"
	Squares Op = "squares" // the sum of the squares
	Min     Op = "min"
	Max     Op = "max"
)

var ops = []Op{Sum, Squares, Min, Max}

// Reducer computes totals of one type of numbers on one device.
type Reducer struct {
	device      *streams.Device
	number      domain.Element
	mode        sums.Mode
	box, blocks map[Op]streams.Function // nil on CPU devices
}

// isSum reports whether the totals of an operation are of type sums.Sum. The others have 8 bytes.
func (r *Reducer) isSum(op Op) bool {
	return op == Squares || op == Sum && !r.number.IsInteger()
}

// totalBytes returns the size of a total.
func (r *Reducer) totalBytes(op Op) int64 {
	if r.isSum(op) {
		return sums.Bytes
	}
	return 8
}

// reductionArgs is struct Reduce of reduce.cu.
type reductionArgs struct {
	data, partial, result uint64
	launch.Strides
	region         launch.Region
	values, blocks int64
}

// reduceProgram returns the program for a scalar, given by its index. Totals of integers are integers.
func reduceProgram(number domain.Element, mode sums.Mode) kernels.Program {
	total := "double"
	if number.IsInteger() {
		total = "i64"
	}
	return kernels.Program{
		File:    "reduce.cu",
		Defines: append([]string{"NUMBER=" + scalar.CName(number), "TOTAL=" + total}, mode.Defines()...),
		Mirrors: []kernels.Mirror{
			{Name: "Reduce", Value: reductionArgs{}}, {Name: "StoredSum", Value: sums.Sum{}},
			{Name: "sizeof(NUMBER)", Value: number.Size()}, {Name: "sizeof(TOTAL)", Value: 8},
		},
	}
}

// NewReducer compiles the operations for the device. mode selects how sums are computed.
func NewReducer(c *kernels.Compiler, d *streams.Device, number domain.Element, mode sums.Mode) (*Reducer, error) {
	t := &Reducer{d, number, mode, map[Op]streams.Function{}, map[Op]streams.Function{}}
	if err := scalar.Check(number); err != nil {
		return nil, err
	}
	for _, op := range ops {
		found, err := c.Load(d, reduceProgram(number.Scalar(), mode), string(op)+"_box", string(op)+"_blocks")
		if err != nil {
			return nil, err
		}
		t.box[op], t.blocks[op] = found[0], found[1]
	}
	return t, nil
}

// Reduction holds the prepared launches of one operation over a box, with one total per value of a point.
type Reduction struct{ launches }

// Over prepares the totals over the points of the box: one per scalar of an element, of which a complex number has
// two. Reals are summed in float64.
func (r *Reducer) Over(op Op, a kernels.Array, box domain.Box) (*Reduction, error) {
	const warpsPerBlock, maxBlocks = 8, 1024
	values, err := r.values(op, a, box)
	if err != nil {
		return nil, err
	}
	size := box.Size()
	blocks := min(maxBlocks, (int64(size[1])*int64(size[2])+warpsPerBlock-1)/warpsPerBlock)
	made, bytes := &Reduction{}, r.scales(op)*values*r.totalBytes(op)
	if err := made.allocate(r.device, bytes, bytes*blocks); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	if err := made.prepare(r.device, string(op), r.specs(op, a, box, made.result, values, blocks), a.Data); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return made, nil
}

// values returns the number of scalars of an element. It returns an error if the operation or the box is invalid,
// or the size of the elements does not match.
func (r *Reducer) values(op Op, a kernels.Array, box domain.Box) (int64, error) {
	const most = 65535 // blocks along y
	if err := a.Holds(box); err != nil {
		return 0, err
	}
	size := a.Layout.ElementSize
	one := r.number.Scalar().Size()
	values := int64(size / one)
	rows := values * r.scales(op)
	switch {
	case !slices.Contains(ops, op):
		return 0, fmt.Errorf("reduce: operation must be sum, squares, min or max, got %q", op)
	case size%r.number.Size() != 0:
		return 0, fmt.Errorf("reduce: element size of %d bytes must be a multiple of the size of %s", size, r.number)
	case box.Empty() || rows > most:
		return 0, fmt.Errorf("reduce: box must not be empty and points must have at most 65535 values, got %v and %d",
			box, values)
	}
	return values, nil
}

// specs returns two launches: one total per block, then the total of all blocks. The partial totals follow the
// result in memory. In Go the second launch does everything.
func (r *Reducer) specs(
	op Op, a kernels.Array, box domain.Box, result *streams.Memory, values, blocks int64,
) []streams.KernelSpec {
	rows := values * r.scales(op)
	arg := launch.Argument(&reductionArgs{
		data: a.Data.Address(), partial: result.Address() + uint64(rows*r.totalBytes(op)), result: result.Address(),
		Strides: launch.StridesOf(a.Layout), region: launch.RegionOf(a.Layout, box), values: values, blocks: blocks,
	})
	block := [3]int{launch.BlockSize, 1, 1}
	return []streams.KernelSpec{
		{Function: r.box[op], Grid: [3]int{int(blocks), int(values), 1}, Block: block, Argument: arg},
		{
			Run:      r.onHost(op, a, box, result, int(values)),
			Function: r.blocks[op],
			Grid:     [3]int{1, int(rows), 1},
			Block:    block,
			Argument: arg,
		},
	}
}

// onHost is the Go counterpart of both launches.
func (r *Reducer) onHost(op Op, a kernels.Array, box domain.Box, result *streams.Memory, values int) func() {
	return map[domain.Element]func(){
		domain.Float32: func() { totalRows[float32, float64](r, op, a, box, result, values) },
		domain.Float64: func() { totalRows[float64, float64](r, op, a, box, result, values) },
		domain.Int32:   func() { totalRows[int32, int64](r, op, a, box, result, values) },
		domain.Int64:   func() { totalRows[int64, int64](r, op, a, box, result, values) },
	}[r.number.Scalar()]
}

// totalRows is the Go counterpart of reduce.cu: scalars T with totals A.
func totalRows[T float32 | float64 | int32 | int64, A float64 | int64](
	t *Reducer, op Op, a kernels.Array, box domain.Box, result *streams.Memory, values int,
) {
	first := launch.Values[T](a.Data)[a.Layout.Offset(box.Lo)*int64(values):]
	for value := range values {
		switch {
		case t.isSum(op):
			sumValue[T](t, op, a, box, result, value, values)
		case op == Sum:
			foldValue(a, box, result, value, values, 0, func(t int64, v T) int64 { return t + int64(v) })
		case op == Min:
			foldValue(a, box, result, value, values, A(first[value]), func(t A, v T) A { return min(t, A(v)) })
		case op == Max:
			foldValue(a, box, result, value, values, A(first[value]), func(t A, v T) A { return max(t, A(v)) })
		}
	}
}

// eachValue calls f with the rows of the box. The first number of a row is one value of a point, and those of the
// next points follow at a distance of values.
func eachValue[T any](a kernels.Array, box domain.Box, value, values int, f func(row []T)) {
	data, n := launch.Values[T](a.Data), int64(box.Size()[0])
	launch.EachRow(a.Layout, box, func(o int64) { f(data[o*int64(values) : (o+n)*int64(values)][value:]) })
}

// foldValue folds one value of all points of the box, in memory order.
func foldValue[T, A any](
	a kernels.Array, box domain.Box, result *streams.Memory, value, values int, none A, fold func(A, T) A,
) {
	total := none
	eachValue(a, box, value, values, func(row []T) {
		for i := 0; i < len(row); i += values {
			total = fold(total, row[i])
		}
	})
	streams.View[A](result.Bytes())[value] = total
}

// sumValue sums one value of all points of the box, or its squares, as squares_box of reduce.cu does.
func sumValue[T float32 | float64 | int32 | int64](
	t *Reducer, op Op, a kernels.Array, box domain.Box, result *streams.Memory, value, values int,
) {
	all := streams.View[sums.Sum](result.Bytes())[value:]
	var largest float64
	all[0], largest = sumScaled[T](t.mode, op, 1, a, box, value, values)
	if t.scales(op) == 1 {
		return
	}
	all[values], all[2*values] = sums.Sum{}, sums.Sum{}
	switch {
	case largest > 0x1p400:
		all[values], _ = sumScaled[T](t.mode, op, 0x1p-600, a, box, value, values)
	case 0 < largest && largest < 0x1p-400:
		all[2*values], _ = sumScaled[T](t.mode, op, 0x1p600, a, box, value, values)
	}
}

// sumScaled sums one value of all points, or its squares, times a power of two, and finds the largest magnitude.
func sumScaled[T float32 | float64 | int32 | int64](
	mode sums.Mode, op Op, scale float64, a kernels.Array, box domain.Box, value, values int,
) (total sums.Sum, largest float64) {
	var room [512]float64
	terms := room[:0]
	eachValue(a, box, value, values, func(row []T) {
		for i := 0; i < len(row); i += values {
			x := float64(row[i]) * scale
			if m := math.Abs(x); m > largest {
				largest = m
			}
			if op == Squares {
				x = float64(x * x)
			}
			if terms = append(terms, x); len(terms) == cap(terms) {
				mode.Add(&total, terms)
				terms = terms[:0]
			}
		}
	})
	mode.Add(&total, terms)
	return total, largest
}

// scales returns the number of sums per value: three for the squares of float64, which may overflow or underflow.
// The first is of all numbers, the second of all times 2^-600, the third of all times 2^600. Parts of the box
// without extreme numbers omit the last two, see Root.
func (r *Reducer) scales(op Op) int64 {
	if op == Squares && (r.number == domain.Float64 || r.number == domain.Complex128) {
		return 3
	}
	return 1
}

// Root returns the root of a sum of squares of one value. Its arguments are the one or three sums returned by
// Sums. Sums over several boxes must first be joined, each with those of the same scale.
func Root(squares ...sums.Sum) float64 {
	v := squares[0].Value()
	switch {
	case len(squares) > 1 && v > 0x1p1000:
		return math.Sqrt(squares[1].Value()) * 0x1p600
	case len(squares) > 1 && v < 0x1p-900:
		return math.Sqrt(squares[2].Value()) * 0x1p-600
	}
	return math.Sqrt(v)
}

// Sums returns the sums of reals, and the sums of squares of any numbers, once the work of Queue is done: one per
// scalar of an element, or three for squares of float64. In the latter case the first sums of all scalars come
// first, see Root.
func (r *Reduction) Sums() []sums.Sum { return streams.View[sums.Sum](r.host.Bytes()) }

// Floats returns the smallest or largest reals.
func (r *Reduction) Floats() []float64 { return streams.View[float64](r.host.Bytes()) }

// Ints returns the totals of integers, except for sums of squares.
func (r *Reduction) Ints() []int64 { return streams.View[int64](r.host.Bytes()) }
