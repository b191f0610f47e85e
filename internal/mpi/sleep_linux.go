package mpi

import (
	"syscall"
	"time"
)

// shortSleep sleeps by the kernel's timer. That of Go makes a millisecond of less where the process is idle, as one is that waits
// for others.
func shortSleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal may end it sooner
}
