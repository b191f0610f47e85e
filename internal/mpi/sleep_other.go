//go:build !linux

package mpi

import "time"

func shortSleep(d time.Duration) { time.Sleep(d) }
