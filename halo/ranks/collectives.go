package ranks

// Broadcast gives the values of the rank root of a communicator to all.
//
// All ranks of a communicator call the same collectives in the same order, with as many values, the same operation and
// the same root; those that differ fail, with ErrArgument. A collective orders nothing else: it is not a barrier. Each
// returns false if a wait timed out or the run has ended, and leaves its result undefined.
func Broadcast[T Numeric](r *Rank, values []T, root int, c Comm) bool {
	return collect(r, broadcast, values, values, Sum, root, c)
}

// Reduce combines the values that each rank has in from, element by element, in to of the rank root. to may be from; on
// other ranks it is not used. The result has the bits of Allreduce, for every root.
func Reduce[T Numeric](r *Rank, to, from []T, op Op, root int, c Comm) bool {
	return collect(r, reduce, to, from, op, root, c)
}

// Allreduce batch the values that each rank has in from, element by element, in to of all ranks; to may be from.
//
// Sums are taken in one order, which follows from the number of ranks alone: so they have the same bits in every run,
// at all ranks, and for any number of devices. With whole the largest power of two up to the number of ranks, the value
// of rank r + whole is first added to that of rank r. Then neighbors 2i and 2i + 1 are added, then those sums, and so
// on.
func Allreduce[T Numeric](r *Rank, to, from []T, op Op, c Comm) bool {
	return collect(r, allreduce, to, from, op, 0, c)
}

// collect is method collective of rank_collectives.cuh.
func collect[T Numeric](r *Rank, what collective, to, from []T, op Op, root int, c Comm) bool {
	if r.Failed() || !r.validRank(c, root) {
		return false
	}
	mine := int64(callOf[T](what, len(from), op, root))
	agreed := []int64{mine, mine}
	t := newTree(allreduce, r.Size(c), r.Index(c), 0)
	if !pass(r, t, c, agreed, func(i int, a, b int64) int64 { return join(Min+Op(i), a, b) }) {
		return false
	}
	other := agreed[0]
	if other == mine {
		other = agreed[1]
	}
	t = newTree(what, r.Size(c), r.Index(c), root)
	gets := what == allreduce || t.me == root
	if !r.check(other == mine && op >= Sum && op <= Max, failure{why: badCollective, expected: mine, came: other}) ||
		!r.check(!gets || len(to) == len(from), failure{why: badResult, expected: int64(len(from)), came: int64(len(to))}) {
		return false
	}
	v := append([]T(nil), from...)
	if !pass(r, t, c, v, func(_ int, a, b T) T { return join(op, a, b) }) {
		return false
	}
	if gets || what == broadcast {
		copy(to, v)
	}
	return true
}

// pass passes values through the tree: v is those of this rank, and then the result, if this rank has one.
func pass[T Numeric](r *Rank, t tree, c Comm, v []T, combine func(i int, a, b T) T) bool {
	other := make([]T, len(v))
	send := func(level int) bool { return r.send(t, c, level, bytesIn(v)) }
	receive := func(level int, to []T) bool { return r.receive(t, c, level, bytesIn(to)) }
	if t.extra() && t.sendsAt(t.last) && !send(t.last) {
		return false
	}
	if t.what == broadcast {
		for level := t.last; level >= 0; level-- {
			if t.receivesAt(level) && !receive(level, v) {
				return false
			}
		}
		for level := t.last - 1; level >= 0; level-- {
			if t.sendsAt(level) && !send(level) {
				return false
			}
		}
		return t.extra() || !t.sendsAt(t.last) || send(t.last)
	}
	if !t.extra() && t.receivesAt(t.last) {
		if !receive(t.last, other) {
			return false
		}
		for i := range v {
			v[i] = combine(i, v[i], other[i])
		}
	}
	for level := range t.last {
		if t.sendsAt(level) && !send(level) {
			return false
		}
		if !t.receivesAt(level) {
			continue
		}
		if !receive(level, other) {
			return false
		}
		for i := range v {
			if t.me>>level&1 == 1 {
				v[i] = combine(i, other[i], v[i])
			} else {
				v[i] = combine(i, v[i], other[i])
			}
		}
	}
	if !t.extra() && t.sendsAt(t.last) && !send(t.last) {
		return false
	}
	return !t.extra() || !t.receivesAt(t.last) || receive(t.last, v)
}

// collectiveSlot receives the values of a level at a rank of a communicator. For a rank of another process it holds
// whether that has taken them.
func (r *Rank) collectiveSlot(c Comm, rank, level int) *collectiveSlot {
	return &r.state.slots[c][r.inWorld(c, rank)][level]
}

// send sends values to the peer of a level, once that has taken the previous ones.
func (r *Rank) send(t tree, c Comm, level int, values []byte) bool {
	peer := t.peer(level)
	box := r.collectiveSlot(c, peer, level)
	if !r.await(func() bool { return !box.full.Load() }) {
		return r.missed(t, c, level)
	}
	if process := r.state.processOf(r.inWorld(c, peer)); process >= 0 {
		box.full.Store(true)
		r.post(process, message{what: msgValues, to: int64(peer), slot: int64(level), n: int64(len(values))}, values)
		return !r.Failed()
	}
	box.values = append(box.values[:0], values...)
	box.full.Store(true)
	return true
}

// receive takes the values that the peer of a level sends.
func (r *Rank) receive(t tree, c Comm, level int, to []byte) bool {
	peer := t.peer(level)
	box := r.collectiveSlot(c, t.me, level)
	if !r.await(func() bool { return box.full.Load() }) {
		return r.missed(t, c, level)
	}
	copy(to, box.values)
	box.full.Store(false)
	if process := r.state.processOf(r.inWorld(c, peer)); process >= 0 {
		r.post(process, message{what: msgTaken, to: int64(peer), from: int64(t.me), slot: int64(level)}, nil)
	}
	return true
}

// missed fails because the peer of a level did not arrive.
func (r *Rank) missed(t tree, c Comm, level int) bool {
	r.fail(failure{why: noCollective, expected: int64(r.inWorld(c, t.peer(level))), detail: int64(t.what)})
	return false
}
