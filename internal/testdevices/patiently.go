package testdevices

import (
	"testing"
	"time"
)

// Patiently calls try with increasing time limits, from 300 ms to over a minute, until it returns no error. It is for
// tests of waits that end at their limit: on a busy machine a correct thread may not get a core within a short limit.
func Patiently(t testing.TB, try func(limit time.Duration) error) {
	t.Helper()
	var err error
	for limit := 300 * time.Millisecond; limit < 2*time.Minute; limit *= 6 {
		if err = try(limit); err == nil {
			return
		}
	}
	t.Error(err)
}
