package halo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Reduction is a prepared operation over the owned points of a field, which can be queued any number of
// times. It runs on the field's devices; the host joins the results of each component.
type Reduction struct {
	resources streams.Resources
	field     *Field
	op        Op
	totals    [][]*reduce.Reduction // by rank, then by array; empty after Close

	// Buffers for results.
	sums      []sums.Sum
	floats    []float64
	ints      []int64
	complexes []complex128
}

// Result is the result of a reduction, one number per component: Floats for real elements and for L2, Ints
// for integers, Complexes for complex numbers. The other two are empty. In comparisons, -0 and +0 count as
// equal and either may be the result.
type Result struct {
	Floats    []float64    // real elements, and all L2 norms
	Ints      []int64      // integers
	Complexes []complex128 // complex elements
}

// NewReduction prepares an operation over a field of numbers. float32 is summed as float64, and int32 as
// int64, which wraps; L2 sums squares in float64, scaled by a power of two if squares overflow or underflow.
// Sums and L2 norms are bitwise independent of the decomposition and the devices, see package sums. With mode
// sums.Fast the order of summation depends on the decomposition. Close frees the buffers.
func NewReduction(f *Field, c *kernels.Compiler, op Op, mode ...sums.Mode) (*Reduction, error) {
	release, err := f.KeepOpen()
	if err != nil {
		return nil, err
	}
	defer release()
	if c == nil {
		return nil, errNoCompiler
	}
	over, ok := op.kernel()
	if !ok {
		return nil, fmt.Errorf("halo: the operation must be sum, min, max or l2, got %q", op)
	}
	for _, m := range mode {
		if m != "" && !slices.Contains(sums.Modes(), m) {
			return nil, fmt.Errorf("halo: the sums must be one of %q, got %q", sums.Modes(), m)
		}
	}
	if f.Spec.IsTyped() {
		return nil, fmt.Errorf("halo: field %q: elements must be numbers, got type %v", f.Spec.Name, f.Spec.Type)
	}
	if f.Spec.Element.IsComplex() && (op == Min || op == Max) {
		return nil, fmt.Errorf("halo: field %q: elements %s do not support %s", f.Spec.Name, f.Spec.Element, op)
	}
	if f.Spec.IsConstant() && f.Spec.Constant[0] {
		return nil, fmt.Errorf("halo: field %q: must not be constant along x", f.Spec.Name)
	}
	r := &Reduction{field: f, op: op, totals: make([][]*reduce.Reduction, len(f.Parts))}
	for rank := range f.Parts {
		if !f.Placement.IsLocal(rank) {
			continue
		}
		if err := r.prepare(rank, c, over, slices.Contains(mode, sums.Fast)); err != nil {
			return nil, errors.Join(fmt.Errorf("halo: %s of field %q: %w", op, f.Spec.Name, err), r.Close())
		}
	}
	return r, nil
}

// prepare prepares the reduction of one subdomain.
func (r *Reduction) prepare(rank int, c *kernels.Compiler, op reduce.Op, fast bool) error {
	f, mode := r.field, sums.Reproducible
	if fast {
		mode = sums.Fast
	}
	t, err := reduce.NewReducer(c, f.Placement.Devices[rank], f.Spec.Element, mode)
	if err != nil {
		return err
	}
	count, _ := f.Spec.Arrays()
	for i := range count {
		made, err := t.Over(op, f.Array(rank, i), f.Cut.Subdomains[rank].Box)
		if err != nil {
			return err
		}
		r.resources.Add(made)
		r.totals[rank] = append(r.totals[rank], made)
	}
	return nil
}

var errNoReduction = errors.New("halo: the reduction is nil: see NewReduction")

// Queue queues the reduction after the work already queued on the streams, one per subdomain, by rank, on its
// device.
func (r *Reduction) Queue(at []*streams.Stream) error {
	if r == nil {
		return errNoReduction
	}
	if r.totals == nil {
		return fmt.Errorf("halo: the %s of field %q is closed", r.op, r.field.Spec.Name)
	}
	if err := errors.Join(r.field.Usable(), r.field.Placement.Suits(at)); err != nil {
		return err
	}
	for rank, s := range at {
		for _, t := range r.totals[rank] {
			if err := t.Queue(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Result returns the result of the last Queue over the subdomains of this process, after all streams have
// finished it; see Together for all processes. It is valid until the next call. For a nil or closed reduction
// it is empty.
func (r *Reduction) Result() Result {
	if r == nil {
		return Result{}
	}
	switch {
	case r.isSum():
		r.sums = here(r, r.sums, r.group(), (*reduce.Reduction).Sums, joinSum)
		return r.ofSums()
	case r.field.Spec.Element.IsInteger():
		r.ints = here(r, r.ints, 1, (*reduce.Reduction).Ints, joinNumber)
		return Result{Ints: r.ints}
	}
	r.floats = here(r, r.floats, 1, (*reduce.Reduction).Floats, joinNumber)
	return Result{Floats: r.floats}
}

// isSum reports whether results are joined as sums.Sum rather than as numbers.
func (r *Reduction) isSum() bool {
	return r.op == L2 || r.op == Sum && !r.field.Spec.Element.IsInteger()
}

// group returns how many sums make one number: two for the squares of the parts of a complex number.
func (r *Reduction) group() int {
	if r.op == L2 && r.field.Spec.Element.IsComplex() {
		return 2
	}
	return 1
}

// ofSums returns the result of the joined sums.
func (r *Reduction) ofSums() Result {
	r.floats = r.floats[:0]
	if r.op == L2 {
		return r.ofSquares()
	}
	for _, s := range r.sums {
		r.floats = append(r.floats, s.Value())
	}
	if !r.field.Spec.Element.IsComplex() {
		return Result{Floats: r.floats}
	}
	r.complexes = r.complexes[:0]
	for i := 0; i < len(r.floats); i += 2 {
		r.complexes = append(r.complexes, complex(r.floats[i], r.floats[i+1]))
	}
	return Result{Complexes: r.complexes}
}

// ofSquares returns the roots of the joined sums of squares: per array those of its components, once or, at
// three scales, three times.
func (r *Reduction) ofSquares() Result {
	arrays, _ := r.field.Spec.Arrays()
	components := max(1, r.field.Spec.Components)
	each, scales := components/arrays, len(r.sums)/components
	for of := range slices.Chunk(r.sums, max(1, each*scales)) {
		for c := range each {
			var squares [3]sums.Sum
			for s := range scales {
				squares[s] = of[s*each+c]
			}
			r.floats = append(r.floats, reduce.Root(squares[:scales]...))
		}
	}
	return Result{Floats: r.floats}
}

// joinFunc joins a value to a number of the result. first is true for the first value of that number.
type joinFunc[T any] func(op Op, number *T, value T, first bool)

func joinSum(_ Op, sum *sums.Sum, value sums.Sum, _ bool) { sum.Join(value) }

func joinNumber[T float64 | int64](op Op, number *T, value T, first bool) {
	switch {
	case first:
		*number = value
	case op == Min:
		*number = min(*number, value)
	case op == Max:
		*number = max(*number, value)
	default:
		*number += value
	}
}

// joined joins values to the numbers of the result, each group of them to one number. at is the index of the
// first value among those of its subdomain or process.
func joined[T any](op Op, numbers []T, at int, values []T, group int, join joinFunc[T]) []T {
	for i, v := range values {
		number := (at + i) / group
		first := number == len(numbers)
		if first {
			numbers = append(numbers, *new(T))
		}
		join(op, &numbers[number], v, first)
	}
	return numbers
}

// here joins the results of all subdomains of this process, into the memory of the last result.
func here[T any](r *Reduction, last []T, group int, of func(*reduce.Reduction) []T, join joinFunc[T]) []T {
	numbers := last[:0]
	for _, arrays := range r.totals {
		at := 0
		for _, t := range arrays {
			values := of(t)
			numbers = joined(r.op, numbers, at, values, group, join)
			at += len(values)
		}
	}
	return numbers
}

// together joins the results of all processes; mine, the result of this one, is empty if it has no subdomain.
func together[T any](
	ctx context.Context, r *Reduction, mine []T, group int, join joinFunc[T],
) (numbers []T, err error) {
	processes := r.field.Placement.Processes
	what := fmt.Sprintf("%s of field %q", r.op, r.field.Spec.Name)
	all, err := mpi.Gather(ctx, processes, what, bytesOf(mine))
	if err != nil {
		return nil, err
	}
	var length int
	for rank, b := range all {
		if len(b) == 0 {
			continue
		}
		if length == 0 {
			length = len(b)
		}
		if len(b) != length {
			return nil, fmt.Errorf("halo: %s: all processes must send %d bytes, got %d from %s", what, length, len(b),
				processes.Name(rank))
		}
		values := make([]T, len(b)/int(unsafe.Sizeof(*new(T))))
		copy(bytesOf(values), b)
		numbers = joined(r.op, numbers, 0, values, group, join)
	}
	return numbers, nil
}

// Close frees the buffers. No queued work may still use them. Close does nothing for a nil or closed
// reduction.
func (r *Reduction) Close() error {
	if r == nil {
		return nil
	}
	r.totals = nil
	return r.resources.Close()
}

// Together returns the result of the last Queue over all processes that share the grid, after all streams
// have finished it. It is bitwise identical on all processes, and to the result of a single process. All
// processes call it. With one process it is Result.
func (r *Reduction) Together(ctx context.Context) (res Result, err error) {
	if r == nil {
		return Result{}, errNoReduction
	}
	processes := r.field.Placement.Processes
	switch {
	case processes.IsAlone():
		return r.Result(), nil
	case ctx == nil:
		return Result{}, processes.Fail(errNoContext)
	case r.isSum():
		r.sums = here(r, r.sums, 1, (*reduce.Reduction).Sums, joinSum)
		if r.sums, err = together(ctx, r, r.sums, r.group(), joinSum); err != nil {
			return Result{}, err
		}
		return r.ofSums(), nil
	case r.field.Spec.Element.IsInteger():
		r.ints = here(r, r.ints, 1, (*reduce.Reduction).Ints, joinNumber)
		res.Ints, err = together(ctx, r, r.ints, 1, joinNumber)
		return res, err
	}
	r.floats = here(r, r.floats, 1, (*reduce.Reduction).Floats, joinNumber)
	res.Floats, err = together(ctx, r, r.floats, 1, joinNumber)
	return res, err
}

// Reduce prepares a reduction, runs it and returns its result over all processes that share the grid, which
// all call it. It does not wait for queued work: no queued work may write the field.
func Reduce(f *Field, c *kernels.Compiler, op Op, mode ...sums.Mode) (res Result, err error) {
	r, err := reduceHere(f, c, op, mode)
	defer func() { err = errors.Join(err, r.Close()) }()
	if f != nil {
		err = f.Placement.Agree(context.Background(), "reduce a field", err)
	}
	if err != nil {
		return Result{}, err
	}
	return r.Together(context.Background())
}

// reduceHere reduces the part of a field in this process.
func reduceHere(f *Field, c *kernels.Compiler, op Op, mode []sums.Mode) (r *Reduction, err error) {
	if r, err = NewReduction(f, c, op, mode...); err != nil {
		return nil, err
	}
	at, err := f.Placement.NewStreams()
	if err != nil {
		return r, err
	}
	r.resources.Add(at)
	if err := r.Queue(at); err != nil {
		return r, err
	}
	return r, at.Sync(transferLimit)
}
