package flags

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/streams"
)

// Word returns the 8 bytes that begin so far into a memory of the CPU, which it shares with others.
func Word(m *streams.Memory, offset int64) *uint64 {
	return (*uint64)(unsafe.Pointer(&m.Bytes()[offset]))
}

// Await polls until a count has reached a value. It returns false after the limit.
func Await(count *uint64, value uint64, limit time.Duration) bool {
	const looks = 64 // between two looks at the clock
	var start time.Time
	for {
		for range looks {
			if atomic.LoadUint64(count) >= value {
				return true
			}
		}
		runtime.Gosched()
		if start.IsZero() {
			start = time.Now()
		} else if time.Since(start) > limit {
			return false
		}
	}
}
