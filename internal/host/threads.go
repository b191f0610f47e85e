package host

import (
	"math"
	"runtime"
	"sync"
)

// Threads returns how many threads of this process run at the same time, at least 1: GOMAXPROCS, but at most one per
// core that it may use and per whole core of its CPU quota. Waits may spin if no more threads than that are busy.
func Threads() int { return max(1, min(runtime.GOMAXPROCS(0), runtime.NumCPU(), quota())) }

// quota is the number of whole cores in the CPU quota at the first call, math.MaxInt without a quota.
var quota = sync.OnceValue(func() int {
	h, err := Open()
	if err != nil {
		return math.MaxInt
	}
	return h.quota()
})
