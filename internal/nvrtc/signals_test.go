//go:build linux && cgo

package nvrtc_test

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// disposition is struct sigaction of Linux.
type disposition struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

func dispositions(t *testing.T) (all [65]disposition) {
	t.Helper()
	for n := 1; n < len(all); n++ {
		if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&all[n])), 8, 0, 0); e != 0 {
			t.Fatal(e)
		}
	}
	return all
}

// Go takes all signals as before while programs are compiled side by side, and after that.
func TestSignalsAreLeftAlone(t *testing.T) {
	c := open(t)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(caught)
	before := dispositions(t)
	done := make(chan bool)
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 3 {
					if _, err := c.Compile(scale, []string{"--gpu-architecture=sm_90", "-DFACTOR=2"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}()
	for looks := 0; ; looks++ {
		for n, now := range dispositions(t) {
			if now != before[n] {
				t.Fatalf("look %d: %v: handler and flags %#x %#x, before %#x %#x", looks, syscall.Signal(n), now.handler, now.flags, before[n].handler, before[n].flags)
			}
		}
		select {
		case <-done:
			if looks > 0 {
				return
			}
		default:
		}
	}
}
