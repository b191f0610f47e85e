//go:build unix

package testdevices

import (
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
)

// ProcessorTime returns the processor time that this process has used. It does not depend on the load of the machine.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	test.Check(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
