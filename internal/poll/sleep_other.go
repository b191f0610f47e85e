//go:build !linux

package poll

import "time"

// Sleep sleeps.
func Sleep(d time.Duration) { time.Sleep(d) }
