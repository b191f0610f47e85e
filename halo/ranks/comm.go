package ranks

import (
	"fmt"
	"math/bits"
)

// Comm is a communicator: some ranks, each with an index in it.
type Comm int

// The communicators: all ranks, and those of one device.
const (
	All Comm = iota
	Device
)

// String names the ranks.
func (c Comm) String() string {
	if c == Device {
		return "the ranks of its device"
	}
	return "all ranks"
}

// Tags is how many tags notifications have: 0 to Tags-1.
const Tags = 256

// Any matches every source and every tag, see Rank.WaitMatching.
const Any = -1

// Slots of windows that do not exist, and of AnyWindow.
const (
	noSlot  = -1
	anySlot = -2
)

// Limits of ranks.cuh.
const (
	MaxDevices  = 16
	MaxWindows  = 16 // of a communicator
	maxTimings  = 1000
	lineBytes   = 128
	memoryLines = 8
	runEnded    = 6 // the line RUN_ENDED
	logLines    = 256
	queued      = 64
	keptMost    = 1024
	boxSlots    = 4
	boxValues   = 32
	maxEnds     = 16
	commands    = 64
	payload     = 4032
)

// Op is the operation of Reduce and Allreduce: enum Op of rank_collectives.cuh. Each propagates a NaN. Of zeros of both
// signs Min and Max return either.
type Op int

// The operations.
const (
	Sum Op = iota
	Min
	Max
)

// Numeric is the element type of a collective.
type Numeric interface{ float64 | float32 | int64 }

func join[T Numeric](op Op, a, b T) T {
	switch {
	case op == Sum:
		return a + b
	case a != a || op == Min && a < b || op == Max && a > b:
		return a
	}
	return b
}

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

// rankCall identifies a collective, its operation, the type and number of its values and its root, so that device ranks
// can check that all call the same one.
type rankCall int64

func callOf[T Numeric](what collective, n int, op Op, root int) rankCall {
	kind := 0
	switch any(*new(T)).(type) {
	case float32:
		kind = 1
	case int64:
		kind = 2
	}
	return rankCall(n)<<24 | rankCall(root)<<6 | rankCall(kind)<<4 | rankCall(min(uint(op), 3))<<2 | rankCall(what)
}

// String describes the call for an error.
func (c rankCall) String() string {
	what, op, kind, root, n := collective(c&3), Op(c>>2&3), c>>4&3, int64(c>>6&(1<<maxLevels-1)), int64(c>>24)
	numbers := fmt.Sprintf("%d %s", n, [...]string{"doubles", "floats", "64-bit integers", "numbers"}[kind])
	name := [...]string{"sum", "min", "max", "unknown operation"}[op]
	switch what {
	case broadcast:
		return fmt.Sprintf("a broadcast of %s from rank %d", numbers, root)
	case reduce:
		return fmt.Sprintf("a reduce (%s) of %s to rank %d", name, numbers, root)
	}
	return fmt.Sprintf("an allreduce (%s) of %s", name, numbers)
}
