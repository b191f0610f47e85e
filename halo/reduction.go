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

// Reduction is one operation over the owned points of a field, made ready to be
// queued any number of times. It runs on the field's devices; the host joins what
// they give of each component.
type Reduction struct {
	resources streams.Resources
	field     *Field
	op        Op
	totals    [][]*reduce.Reduction // by rank, then by array; none once it is closed

	// Room for results.
	sums      []sums.Sum
	floats    []float64
	ints      []int64
	complexes []complex128
}

// Result is what a reduction gives, a number a component: Floats for real
// elements, and for L2; Ints for whole ones; Complexes for complex ones. The other
// two are empty. Of zeros that are compared, -0 and +0 count as equal and either may
// be the result.
type Result struct {
	Floats    []float64
	Ints      []int64
	Complexes []complex128
}

// NewReduction makes an operation ready over a field of numbers. float32 is summed
// as float64, and int32 as int64, which wraps; L2 squares float64, scaled by a power of
// two where squares overflow or underflow. A field has one sum and one L2, to the bit, whatever
// its cut and its devices: see package sums. With mode sums.Fast they are taken in an
// order that depends on the cut. Close frees what it holds.
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
		return nil, fmt.Errorf("halo: no operation %q: sum, min, max or l2", op)
	}
	for _, m := range mode {
		if m != "" && !slices.Contains(sums.Modes(), m) {
			return nil, fmt.Errorf("halo: sums %q: must be one of %q", m, sums.Modes())
		}
	}
	if f.Spec.IsTyped() {
		return nil, fmt.Errorf("halo: field %q has values of type %v, which are not numbers", f.Spec.Name, f.Spec.Type)
	}
	if f.Spec.Element.complex() && (op == Min || op == Max) {
		return nil, fmt.Errorf("halo: field %q has elements %s, which have no %s", f.Spec.Name, f.Spec.Element, op)
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

// prepare makes the work of one subdomain ready.
func (r *Reduction) prepare(rank int, c *kernels.Compiler, op reduce.Op, fast bool) error {
	f, mode := r.field, sums.Reproducible
	if fast {
		mode = sums.Fast
	}
	t, err := reduce.NewReducer(c, f.Placement.Devices[rank], kernels.Number(f.Spec.Element), mode)
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

// Queue queues the reduction after what was queued before on the streams: one for
// every subdomain, by rank, of its device.
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

// Result returns what the last Queue gave, once all streams have done it, of the subdomains of
// this process: see Together for all. It is good until the next call. Once the reduction is closed
// it is empty, and so it is of nil.
func (r *Reduction) Result() Result {
	if r == nil {
		return Result{}
	}
	switch {
	case r.isSum():
		r.sums = here(r, r.sums, r.group(), (*reduce.Reduction).Sums, joinSum)
		return r.ofSums()
	case r.field.Spec.Element.whole():
		r.ints = here(r, r.ints, 1, (*reduce.Reduction).Ints, joinNumber)
		return Result{Ints: r.ints}
	}
	r.floats = here(r, r.floats, 1, (*reduce.Reduction).Floats, joinNumber)
	return Result{Floats: r.floats}
}

// isSum reports whether results are joined as sums.Sum, and not as numbers.
func (r *Reduction) isSum() bool {
	return r.op == L2 || r.op == Sum && !r.field.Spec.Element.whole()
}

// group returns how many sums make one number: the squares of both parts of a complex number.
func (r *Reduction) group() int {
	if r.op == L2 && r.field.Spec.Element.complex() {
		return 2
	}
	return 1
}

// ofSums returns the result that the joined sums are.
func (r *Reduction) ofSums() Result {
	r.floats = r.floats[:0]
	if r.op == L2 {
		return r.ofSquares()
	}
	for _, s := range r.sums {
		r.floats = append(r.floats, s.Value())
	}
	if !r.field.Spec.Element.complex() {
		return Result{Floats: r.floats}
	}
	r.complexes = r.complexes[:0]
	for i := 0; i < len(r.floats); i += 2 {
		r.complexes = append(r.complexes, complex(r.floats[i], r.floats[i+1]))
	}
	return Result{Complexes: r.complexes}
}

// ofSquares returns the roots of the joined sums of squares: of each array those of its components, once or, at three
// scales, three times.
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

// joinFunc joins a value to a number of the result. first is whether it is the first value of that number.
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

// joined joins some values to the numbers of the result, each group of them to one. at is the index of the first value
// among those of its subdomain or process.
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

// here joins what all subdomains of this process have, into the memory of the last result.
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

// together joins what all processes have, of which mine is what this one has: nothing where it has no subdomain.
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
			return nil, fmt.Errorf("halo: %s: %d bytes of %s, %d of others", what, len(b), processes.Name(rank), length)
		}
		values := make([]T, len(b)/int(unsafe.Sizeof(*new(T))))
		copy(bytesOf(values), b)
		numbers = joined(r.op, numbers, 0, values, group, join)
	}
	return numbers, nil
}

// Close frees what is held. Nothing queued may still use it. Closing twice is no
// error, nor is closing nil.
func (r *Reduction) Close() error {
	if r == nil {
		return nil
	}
	r.totals = nil
	return r.resources.Close()
}

// Together returns what the last Queue computed on all processes that share the grid, once all
// streams have done it: on each the same bits, which are those of one process. All processes call
// it. Where there is one, it is Result.
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
	case r.field.Spec.Element.whole():
		r.ints = here(r, r.ints, 1, (*reduce.Reduction).Ints, joinNumber)
		res.Ints, err = together(ctx, r, r.ints, 1, joinNumber)
		return res, err
	}
	r.floats = here(r, r.floats, 1, (*reduce.Reduction).Floats, joinNumber)
	res.Floats, err = together(ctx, r, r.floats, 1, joinNumber)
	return res, err
}

// Reduce prepares a reduction, runs it and returns its result over all processes that
// share the grid, which all call it. It does not wait for work queued before: nothing may
// be writing the field.
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

// reduceHere reduces what this process has of a field.
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
