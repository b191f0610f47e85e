package poll

import (
	"syscall"
	"time"
)

// Sleep sleeps with the kernel's timer, and holds its thread. Go's timer sleeps at least 1 ms in an idle process, such
// as one that waits for others.
func Sleep(d time.Duration) {
	if d >= time.Millisecond {
		time.Sleep(d)
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal may end it early
}
