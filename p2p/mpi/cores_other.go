//go:build !linux

package mpi

// hostCores is known on Linux alone.
func hostCores() (n int, ok bool) { return 0, false }
