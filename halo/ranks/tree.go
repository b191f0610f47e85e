package ranks

import "math/bits"

// collective is enum Collective of rank_tree.cuh.
type collective int

const (
	broadcast collective = iota
	reduce
	allreduce
)

// maxLevels is of the tree of a communicator.
const maxLevels = 18

// levels is how many levels the tree of so many ranks has.
func levels(ranks int64) int64 { return int64(bits.Len64(uint64(ranks))) }

// tree is struct Tree of rank_tree.cuh: the part of a rank in a collective. Of n ranks, whole is the largest power of
// two up to n. Rank r below whole has, at each level below last, the peer with that bit of r changed; at level last
// rank r and rank r + whole are peers.
type tree struct {
	what            collective
	me, whole, last int
	sends, receives uint // at which levels, a bit each
}

func newTree(what collective, ranks, me, root int) tree {
	last := bits.Len(uint(ranks)) - 1
	t := tree{what: what, me: me, whole: 1 << last, last: last}
	paired := uint(0)
	if t.extra() || me+t.whole < ranks {
		paired = 1 << last
	}
	if what == allreduce {
		t.sends = paired
		if !t.extra() {
			t.sends |= uint(t.whole - 1)
		}
		t.receives = t.sends
		return t
	}
	leaves, upward := uint(0), uint(1)<<last
	if !t.extra() {
		// The level at which the root is, or the peer of a root that is extra.
		level := min(last, bits.TrailingZeros(uint(me^root&(t.whole-1))))
		leaves = uint(1)<<level - 1 | paired
		upward = uint(1) << level &^ (1 << last)
	}
	if root >= t.whole && me == root-t.whole { // gets the root's number from it, and gives it the result
		upward = 1 << last
		if what == broadcast {
			leaves &^= 1 << last
		}
	}
	if t.extra() && me == root {
		leaves = 1 << last
		if what == broadcast {
			upward = 0
		}
	}
	if what == broadcast {
		t.sends, t.receives = leaves, upward
	} else {
		t.sends, t.receives = upward, leaves
	}
	return t
}

func (t tree) extra() bool               { return t.me >= t.whole }
func (t tree) sendsAt(level int) bool    { return t.sends>>level&1 == 1 }
func (t tree) receivesAt(level int) bool { return t.receives>>level&1 == 1 }

func (t tree) peer(level int) int {
	switch {
	case level < t.last:
		return t.me ^ 1<<level
	case t.extra():
		return t.me - t.whole
	}
	return t.me + t.whole
}
