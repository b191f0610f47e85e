package poll

import (
	"runtime"
	"testing"
	"time"
)

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
