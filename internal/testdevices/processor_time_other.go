//go:build !unix

package testdevices

import (
	"testing"
	"time"
)

// ProcessorTime skips the test.
func ProcessorTime(t testing.TB) time.Duration {
	t.Skip("SKIPPED: needs the processor time of a process, which only Unix has here")
	return 0
}
