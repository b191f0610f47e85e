//go:build unix

package testdevices

import (
	"syscall"
	"testing"
	"time"
)

// ProcessorTime returns the processor time that this process has used. It does not depend on the load of the machine.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
