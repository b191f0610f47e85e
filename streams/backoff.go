package streams

import (
	"runtime"
	"time"
)

// How often a waiting thread looks before it lets others run: while spinning
// it reacts within 100 ns, and later costs the others nothing.
const (
	shortSpin = 200   // some 10 us
	longSpin  = 20000 // some 200 us; only where every thread has a core
	yields    = 20
	maxSleep  = 200 * time.Microsecond
)

// backoff paces a loop that waits: it spins, then yields, then sleeps longer
// and longer up to maxSleep.
type backoff struct {
	spins, left int
	yields      int
	sleep       time.Duration
	start       time.Time
}

func newBackoff(spins int) backoff {
	return backoff{spins: spins, left: spins, yields: yields, sleep: 5 * time.Microsecond}
}

// pause waits a little and returns how long the loop has waited, 0 while it
// still spins.
func (b *backoff) pause() time.Duration {
	if b.left > 0 {
		b.left--
		return 0
	}
	if b.yields > 0 {
		if b.yields == yields {
			b.start = time.Now()
		}
		b.yields--
		runtime.Gosched()
		return 0
	}
	time.Sleep(b.sleep)
	b.sleep = min(2*b.sleep, maxSleep)
	return time.Since(b.start)
}
