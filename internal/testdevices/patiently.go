package testdevices

import (
	"testing"
	"time"
)

// Patiently calls try with longer and longer limits of waits, from 300 ms to over a minute, until it returns no error.
// It is for tests of waits that end by their limit: on a busy machine a thread that does all it should may get no core
// for as long as a short one.
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
