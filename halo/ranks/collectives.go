package ranks

import (
	"math/bits"

	"github.com/halox/halox/streams"
)

// Broadcast sends the values of rank root of a communicator to all its ranks.
//
// All ranks of a communicator call the same collectives in the same order, with as many values, the same operation and
// the same root; those that differ fail, with ErrArgument. A collective orders nothing else: it is not a barrier. Each
// returns false if a wait timed out or the run has ended, and leaves its result undefined.
func Broadcast[T Numeric](r *Rank, values []T, root int, c Comm) bool {
	return collect(r, broadcast, values, values, Sum, root, c)
}

// Reduce combines the values that each rank has in from, element by element, into to of rank root. to may be
// from; on other ranks it is not used. The result is bitwise identical to that of Allreduce, for every root.
func Reduce[T Numeric](r *Rank, to, from []T, op Op, root int, c Comm) bool {
	return collect(r, reduce, to, from, op, root, c)
}

// Allreduce combines the values that each rank has in from, element by element, into to of all ranks; to may
// be from.
//
// The order of sums depends only on the number of ranks: so they are bitwise reproducible, equal at all
// ranks, and independent of the number of devices. Let whole be the largest power of two up to the number of
// ranks. The value of rank r + whole is first added to that of rank r. Then neighbors 2i and 2i + 1 are
// added, then those sums, and so on.
func Allreduce[T Numeric](r *Rank, to, from []T, op Op, c Comm) bool {
	return collect(r, allreduce, to, from, op, 0, c)
}

// collect is method collective of rank_collectives.cuh. All ranks give their values and synchronize; then
// each rank that gets a result combines the values itself.
func collect[T Numeric](r *Rank, what collective, to, from []T, op Op, root int, c Comm) bool {
	if r.Failed() || !r.validRank(c, root) {
		return false
	}
	call := callOf[T](what, len(from), op, root)
	r.give(c, call, bytesIn(from))
	if !r.meet(c) {
		r.missed(what, c)
		return false
	}
	other := call
	for rank := range r.Size(c) {
		if g := r.given(c, rank); other == call {
			other = g.call
		}
	}
	gets := what == allreduce || r.Index(c) == root
	differs := failure{why: badCollective, expected: int64(call), came: int64(other)}
	small := failure{why: badResult, expected: int64(len(from)), came: int64(len(to))}
	if !r.check(other == call && op >= Sum && op <= Max, differs) || !r.check(!gets || len(to) == len(from), small) {
		return false
	}
	if what == broadcast {
		copy(to, streams.View[T](r.given(c, root).values))
	} else if gets {
		values := make([]T, r.Size(c))
		for i := range to {
			for rank := range values {
				values[rank] = streams.View[T](r.given(c, rank).values)[i]
			}
			to[i] = fold(op, values)
		}
	}
	return true
}

// fold combines the values of all ranks in the order of Allreduce. It overwrites them.
func fold[T Numeric](op Op, values []T) T {
	whole := 1 << (bits.Len(uint(len(values))) - 1)
	for i, v := range values[whole:] {
		values[i] = join(op, values[i], v)
	}
	for ; whole > 1; whole /= 2 {
		for i := range whole / 2 {
			values[i] = join(op, values[2*i], values[2*i+1])
		}
	}
	return values[0]
}

// given returns the values that a rank of a communicator gives to the current collective. Consecutive
// collectives use different slots: a rank that has passed one may give to the next while others still read.
func (r *Rank) given(c Comm, rank int) *given {
	return &r.state.given[c][r.collectives[c]%2][r.inWorld(c, rank)]
}

// give gives values to the next collective of a communicator, also in other processes.
func (r *Rank) give(c Comm, call rankCall, values []byte) {
	r.collectives[c]++
	number := r.collectives[c]
	g := r.given(c, r.Index(c))
	g.call, g.values = call, append(g.values[:0], values...)
	g.number.Store(number)
	if r.state.remote == nil || c != All {
		return
	}
	last := r.state.remote.processes.Rank
	for device, process := range r.state.owners {
		if process != r.state.remote.processes.Rank && process != last {
			r.post(process, message{
				what: msgValues, to: int64(device * r.state.ranks), from: int64(r.Index(All)), slot: int64(number),
				n: int64(call),
			}, values)
		}
		last = process
	}
}

// missed fails because a rank did not call a collective.
func (r *Rank) missed(what collective, c Comm) {
	for rank := range r.Size(c) {
		if r.given(c, rank).number.Load() != r.collectives[c] {
			r.fail(failure{why: noCollective, expected: int64(r.inWorld(c, rank)), detail: int64(what)})
			return
		}
	}
	r.fail(failure{why: noBarrier, expected: int64(c)})
}
