package halo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

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
// as float64, and int32 as int64, which wraps; L2 squares float64, in which numbers
// beyond 1e154 overflow to +Inf. A field has one sum and one L2, to the bit, whatever
// its cut and its devices: see package sums. With mode sums.Fast they are taken in an
// order that depends on the cut. Close frees what it holds.
func NewReduction(f *Field, c *kernels.Compiler, op Op, mode ...sums.Mode) (*Reduction, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errNoCompiler
	}
	over, ok := op.kernel()
	if !ok {
		return nil, fmt.Errorf("halo: no operation %q: sum, min, max or l2", op)
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
	e := r.field.Spec.Element
	if e.whole() && r.op != L2 {
		r.ints = joined(r, r.ints, (*reduce.Reduction).Ints)
		return Result{Ints: r.ints}
	}
	if r.isSum() {
		r.joinSums(r.group())
		return r.ofSums()
	}
	r.floats = joined(r, r.floats, (*reduce.Reduction).Floats)
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
	for _, s := range r.sums {
		v := s.Value()
		if r.op == L2 {
			v = math.Sqrt(v)
		}
		r.floats = append(r.floats, v)
	}
	if !r.field.Spec.Element.complex() || r.op == L2 {
		return Result{Floats: r.floats}
	}
	r.complexes = r.complexes[:0]
	for i := 0; i < len(r.floats); i += 2 {
		r.complexes = append(r.complexes, complex(r.floats[i], r.floats[i+1]))
	}
	return Result{Complexes: r.complexes}
}

// joinSums joins the sums of all subdomains of this process, of groups of so many numbers together.
func (r *Reduction) joinSums(group int) {
	r.sums = r.sums[:0]
	for _, arrays := range r.totals {
		n := 0
		for _, t := range arrays {
			for _, s := range t.Sums() {
				if n/group == len(r.sums) {
					r.sums = append(r.sums, sums.Sum{})
				}
				r.sums[n/group].Join(s)
				n++
			}
		}
	}
}

// joined puts the totals of all subdomains together, into the room of the last result.
func joined[T float64 | int64](r *Reduction, room []T, of func(*reduce.Reduction) []T) []T {
	room = room[:0]
	for _, arrays := range r.totals {
		n := 0
		for _, t := range arrays {
			for _, v := range of(t) {
				if n == len(room) {
					room = append(room, v)
				} else {
					room[n] = join(r.op, room[n], v)
				}
				n++
			}
		}
	}
	return room
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

// Together returns what the last Queue gave on all processes that share the grid, once all
// streams have done it: on each the same bits, which are those of one process. All processes call
// it. Where there is one, it is Result.
func (r *Reduction) Together(ctx context.Context) (Result, error) {
	if r == nil {
		return Result{}, errNoReduction
	}
	processes := r.field.Placement.Processes
	switch {
	case processes.IsAlone():
		return r.Result(), nil
	case ctx == nil:
		return Result{}, processes.Fail(errNoContext)
	}
	all, err := mpi.Gather(ctx, processes, fmt.Sprintf("%s of field %q", r.op, r.field.Spec.Name), r.encode())
	if err != nil {
		return Result{}, err
	}
	return r.decode(all)
}

// encode returns what this process has of each number, none where it has no subdomain.
func (r *Reduction) encode() (b []byte) {
	switch {
	case r.isSum():
		r.joinSums(1)
		b = make([]byte, len(r.sums)*sums.Bytes)
		copy(streams.View[sums.Sum](b), r.sums)
	case r.field.Spec.Element.whole():
		for _, v := range joined(r, r.ints, (*reduce.Reduction).Ints) {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
	default:
		for _, v := range joined(r, r.floats, (*reduce.Reduction).Floats) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

// decode joins what the processes have.
func (r *Reduction) decode(all [][]byte) (Result, error) {
	length := 0
	for _, b := range all {
		length = max(length, len(b))
	}
	var whole [][]byte
	for rank, b := range all {
		switch {
		case len(b) == length:
			whole = append(whole, b)
		case len(b) > 0:
			return Result{}, fmt.Errorf("halo: %s of field %q: %d bytes of %s, %d of others", r.op, r.field.Spec.Name,
				len(b), r.field.Placement.Processes.Name(rank), length)
		}
	}
	switch {
	case r.isSum():
		r.sums = joinedSums(whole, length/sums.Bytes, r.group())
		return r.ofSums(), nil
	case r.field.Spec.Element.whole():
		return Result{Ints: joinedWords(r.op, whole, func(w uint64) int64 { return int64(w) })}, nil
	}
	return Result{Floats: joinedWords(r.op, whole, math.Float64frombits)}, nil
}

// joinedSums joins sums of all processes, and groups of so many of them.
func joinedSums(all [][]byte, n, group int) []sums.Sum {
	joined := make([]sums.Sum, n/group)
	for _, b := range all {
		aligned := make([]sums.Sum, n)
		for i := range aligned {
			aligned[i] = streams.View[sums.Sum](append([]byte(nil), b[i*sums.Bytes:(i+1)*sums.Bytes]...))[0]
			joined[i/group].Join(aligned[i])
		}
	}
	return joined
}

// joinedWords joins numbers of all processes.
func joinedWords[T float64 | int64](op Op, all [][]byte, of func(uint64) T) (values []T) {
	for process, b := range all {
		for i := range len(b) / 8 {
			v := of(binary.LittleEndian.Uint64(b[8*i:]))
			if process == 0 {
				values = append(values, v)
			} else {
				values[i] = join(op, values[i], v)
			}
		}
	}
	return values
}

// Reduce makes a reduction ready, carries it out and returns its result, of all processes that
// share the grid, which all call it. It waits
// for nothing that was queued before: the field must be still.
func Reduce(f *Field, c *kernels.Compiler, op Op, mode ...sums.Mode) (res Result, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	r, err := reduceHere(f, c, op, mode, &open)
	if f != nil {
		err = f.Placement.Agree(context.Background(), "reduce a field", err)
	}
	if err != nil {
		return Result{}, err
	}
	return r.Together(context.Background())
}

// reduceHere reduces what this process has of a field.
func reduceHere(f *Field, c *kernels.Compiler, op Op, mode []sums.Mode, open *streams.Resources) (*Reduction, error) {
	r, err := NewReduction(f, c, op, mode...)
	if err != nil {
		return nil, err
	}
	open.Add(r)
	at := make([]*streams.Stream, len(f.Parts))
	for rank, d := range f.Placement.Devices {
		if d == nil {
			continue
		}
		if at[rank], err = d.NewStream(streams.Normal); err != nil {
			return nil, err
		}
		open.Add(at[rank])
	}
	if err := r.Queue(at); err != nil {
		return nil, err
	}
	return r, Streams(at).Sync(transferLimit)
}
