package streams

import (
	"runtime"
	"time"

	"github.com/halox/halox/internal/nap"
)

// How long a waiting thread keeps looking before it lets others run. While it
// spins it reacts within 100 ns; later, within the 60 us that a sleep takes at
// least, and it costs the others nothing.
const (
	shortSpin = 10 * time.Microsecond
	longSpin  = 100 * time.Millisecond // only where every thread has a core, as CUDA's own waits do
	yields    = 20
	maxSleep  = 200 * time.Microsecond
)

// spinFor returns how long each of that many threads may spin.
func spinFor(threads int) time.Duration {
	if threads < runtime.GOMAXPROCS(0) {
		return longSpin
	}
	return shortSpin
}

// backoff paces a loop that waits: it spins, then yields, then sleeps longer
// and longer up to maxSleep.
type backoff struct {
	spin   time.Duration
	last   time.Time
	waited time.Duration
	yields int
	sleep  time.Duration
}

// longestLook is the most that one look at the clock adds to what was waited:
// while the process was stopped, or the machine asleep, nobody waited.
const longestLook = time.Second

func newBackoff(spin time.Duration) backoff {
	return backoff{spin: spin, yields: yields, sleep: 5 * time.Microsecond}
}

// pause waits a little and returns how long the loop has waited, 0 as long as
// it has not slept.
func (b *backoff) pause() time.Duration {
	if b.look() < b.spin {
		return 0
	}
	if b.yields > 0 {
		b.yields--
		runtime.Gosched()
		return 0
	}
	nap.Sleep(b.sleep)
	b.sleep = min(2*b.sleep, maxSleep)
	return b.look()
}

// look returns how long the loop has waited.
func (b *backoff) look() time.Duration {
	now := time.Now()
	if !b.last.IsZero() {
		b.waited += min(now.Sub(b.last), longestLook)
	}
	b.last = now
	return b.waited
}
