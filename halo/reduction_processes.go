package halo

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

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
	all, err := processes.Gather(ctx, fmt.Sprintf("%s of field %q", r.op, r.field.Spec.Name), r.encode())
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
			return Result{}, fmt.Errorf("halo: %s of field %q: %d bytes of %s, %d of others", r.op, r.field.Spec.Name, len(b), r.field.Placement.Processes.Name(rank), length)
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
