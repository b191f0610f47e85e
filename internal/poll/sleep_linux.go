package poll

import (
	"syscall"
	"time"
)

// Sleep sleeps by the kernel's timer, and holds its thread. Go's timer makes 1 ms of anything shorter where the process
// is idle, as one is that waits for others.
func Sleep(d time.Duration) {
	if d >= time.Millisecond {
		time.Sleep(d)
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal may end it sooner
}
