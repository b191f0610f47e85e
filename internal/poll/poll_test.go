package poll

import (
	"runtime"
	"testing"
	"time"
)

// A wait keeps its thread, then yields, then sleeps longer and longer up to a limit. A gap in which the process was
// stopped counts as 1 s.
func TestPause(t *testing.T) {
	var slept []time.Duration
	p := Policy{
		Spin: time.Millisecond, Yields: 3, Share: 8, Min: time.Millisecond, Max: 2 * time.Second,
		Sleep: func(d time.Duration) { slept = append(slept, d) },
	}
	w := p.Begin()
	for w.Pause() < p.Spin {
	}
	if w.yields != 1 || len(slept) > 0 {
		t.Fatalf("%d yields and %v of sleep at the end of the spin", w.yields, slept)
	}
	for range 3 {
		w.Pause()
	}
	if w.yields != 3 || len(slept) != 1 || slept[0] != p.Min {
		t.Fatalf("%d yields, and then sleeps %v", w.yields, slept)
	}
	for range 2 {
		w.waited += 8 * time.Second
		w.Pause()
	}
	if d := slept[1] - time.Second; len(slept) != 3 || d < 0 || d > 500*time.Millisecond || slept[2] != p.Max {
		t.Errorf("after 8 and 16 s it sleeps %v", slept[1:])
	}
	w.last = w.last.Add(-time.Hour)
	if waited := w.Waited(); waited < 17*time.Second || waited > 30*time.Second {
		t.Errorf("a wait that was stopped for an hour counts %v", waited)
	}
}

// Many short sleeps of an idle process take far less than a millisecond each.
func TestSleep(t *testing.T) {
	best := time.Hour
	for n := 0; n < 50 || best > 900*time.Microsecond && n < 5000; n++ { // on a host that has other work
		begin := time.Now()
		Sleep(20 * time.Microsecond)
		took := time.Since(begin)
		if best = min(best, took); took < 20*time.Microsecond {
			t.Errorf("20 us took %v", took)
		}
	}
	if runtime.GOOS == "linux" && best > 900*time.Microsecond {
		t.Errorf("20 us took %v at least", best)
	}
}
