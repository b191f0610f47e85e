// Package reduce reduces the values of a field: a NormReducer computes the norms of a convergence check, of a field
// and the one before it, and a Reducer sums, smallest and largest values.
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

// launches are prepared launches that belong together, one stage after the other, and their memory.
type launches struct {
	resources streams.Resources
	all       []*streams.Kernel
	result    *streams.Memory // on the device: the results, then partial ones
	host      *streams.Memory // pinned: the results
}

// allocate allocates memory for results, and on the device also for partial results.
func (l *launches) allocate(d *streams.Device, results, partial int64) error {
	l.result, l.host = l.resources.Alloc(d, results+partial), l.resources.AllocPinned(d, results)
	return l.resources.Err()
}

// prepare prepares the launches, which use memory besides their own. On CPU devices those without a Go form are left
// out: the others do all.
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

// Close frees its memory. Closing twice is not an error.
func (l *launches) Close() error { return l.resources.Close() }

// Op is what a Reducer computes of the values of a box.
type Op string

// The operations. A NaN among the values makes the total of reals NaN in all of
// them. Sums of whole numbers wrap. Sums of reals, and of squares, are of float64.
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
	number      kernels.Number
	mode        sums.Mode
	box, blocks map[Op]streams.Function // nil where Go runs
}

// isSum reports whether the totals of an operation are of type sums.Sum. The others have 8 bytes.
func (r *Reducer) isSum(op Op) bool {
	return op == Squares || op == Sum && r.number != "int32" && r.number != "int64"
}

// totalBytes is the size of a total.
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

// reduceProgram is that of a scalar, by its place. Totals of whole numbers are whole numbers.
func reduceProgram(place int, mode sums.Mode) kernels.Program {
	number, total := scalar.All[place], "double"
	if number.Number == "int32" || number.Number == "int64" {
		total = "i64"
	}
	return kernels.Program{
		File: "reduce.cu", Defines: append([]string{"NUMBER=" + number.Name, "TOTAL=" + total}, mode.Defines()...),
		Mirrors: []kernels.Mirror{
			{Name: "Reduce", Value: reductionArgs{}}, {Name: "StoredSum", Value: sums.Sum{}},
			{Name: "sizeof(NUMBER)", Value: number.Size}, {Name: "sizeof(TOTAL)", Value: 8},
		},
	}
}

// NewReducer compiles the operations for the device. Sums are taken in a mode.
func NewReducer(c *kernels.Compiler, d *streams.Device, number kernels.Number, mode sums.Mode) (*Reducer, error) {
	t := &Reducer{d, number, mode, map[Op]streams.Function{}, map[Op]streams.Function{}}
	place, _, err := scalar.Of(number)
	if err != nil {
		return nil, err
	}
	for _, op := range ops {
		found, err := c.Load(d, reduceProgram(place, mode), string(op)+"_box", string(op)+"_blocks")
		if err != nil {
			return nil, err
		}
		t.box[op], t.blocks[op] = found[0], found[1]
	}
	return t, nil
}

// Reduction is the prepared launches of one operation over a box, with one total per value of a point.
type Reduction struct{ launches }

// Over prepares the totals over the points of the box: one for each scalar of an element, of which a complex number has
// two. Reals are summed as float64.
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

// values returns how many scalars an element has. It is an error if the operation
// or the box is none, or the elements are not made of the numbers.
func (r *Reducer) values(op Op, a kernels.Array, box domain.Box) (int64, error) {
	const most = 65535 // blocks along y
	place, count, err := scalar.Of(r.number)
	if err != nil {
		return 0, err
	}
	if err := a.Holds(box); err != nil {
		return 0, err
	}
	size := a.Layout.ElementSize
	one := scalar.All[place].Size
	values := int64(size / one)
	rows := values * r.scales(op)
	switch {
	case !slices.Contains(ops, op):
		return 0, fmt.Errorf("reduce: no operation %q: sum, squares, min or max", op)
	case size%(one*count) != 0:
		return 0, fmt.Errorf("reduce: elements of %d bytes are no whole number of %s", size, r.number)
	case box.Empty() || rows > most:
		return 0, fmt.Errorf("reduce: totals over box %v of %d values a point", box, values)
	}
	return values, nil
}

// specs reduces in two launches: a total a block, then one in all. The partial
// totals follow the result in memory. In Go the second does all.
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

// onHost is the host version of both launches.
func (r *Reducer) onHost(op Op, a kernels.Array, box domain.Box, result *streams.Memory, values int) func() {
	place, _, _ := scalar.Of(r.number) // checked before
	return map[kernels.Number]func(){
		"float32": func() { totalRows[float32, float64](r, op, a, box, result, values) },
		"float64": func() { totalRows[float64, float64](r, op, a, box, result, values) },
		"int32":   func() { totalRows[int32, int64](r, op, a, box, result, values) },
		"int64":   func() { totalRows[int64, int64](r, op, a, box, result, values) },
	}[scalar.All[place].Number]
}

// totalRows is the host version of reduce.cu: scalars T with totals A.
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

// eachValue calls f with the rows of the box, the first of whose numbers is one value of a point; the next
// points have theirs so many values behind.
func eachValue[T any](a kernels.Array, box domain.Box, value, values int, f func(row []T)) {
	data, n := launch.Values[T](a.Data), int64(box.Size()[0])
	launch.EachRow(a.Layout, box, func(o int64) { f(data[o*int64(values) : (o+n)*int64(values)][value:]) })
}

// foldValue folds one value of all points of the box, in order of memory.
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

// scales returns how many sums there are of each value: three of the squares of float64, which may overflow or
// underflow. The first is of all numbers, the second of all times 2^-600, the third of all times 2^600. Parts of the
// box without numbers so large or so small leave the last two out, see Root.
func (r *Reducer) scales(op Op) int64 {
	if op == Squares && (r.number == "float64" || r.number == "complex128") {
		return 3
	}
	return 1
}

// Root returns the root of a sum of squares of one value. Its arguments are the one or three sums that Sums has of it;
// sums over several boxes are joined first, each with those of the same scale.
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

// Sums returns the sums of reals, and those of the squares of any numbers, once what Queue queued is done: one for each
// scalar of an element, or three for squares of float64, those of the first kind for all scalars first, see Root.
func (r *Reduction) Sums() []sums.Sum { return streams.View[sums.Sum](r.host.Bytes()) }

// Floats returns the smallest or largest reals.
func (r *Reduction) Floats() []float64 { return streams.View[float64](r.host.Bytes()) }

// Ints returns the totals of whole numbers, but not the sums of their squares.
func (r *Reduction) Ints() []int64 { return streams.View[int64](r.host.Bytes()) }
