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

// Tags is the number of notification tags: 0 to Tags-1.
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

// maxLevels is the maximum number of levels of the tree of a communicator on GPUs.
const maxLevels = 18

// levels returns the number of levels of the tree of a number of ranks.
func levels(ranks int64) int64 { return int64(bits.Len64(uint64(ranks))) }

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

// bytes returns the size of the values of a rank.
func (c rankCall) bytes() int64 { return int64(c>>24) * [...]int64{8, 4, 8, 8}[c>>4&3] }

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
