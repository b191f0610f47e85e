package nap

import (
	"runtime"
	"testing"
	"time"
)

// Many short sleeps of an idle process take far less than a millisecond each.
func TestSleep(t *testing.T) {
	best := time.Hour
	for range 50 {
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
