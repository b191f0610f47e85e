//go:build !linux

package nap

import "time"

// Sleep sleeps.
func Sleep(d time.Duration) { time.Sleep(d) }
