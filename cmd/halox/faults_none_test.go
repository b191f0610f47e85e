//go:build !linux || !cgo

package main

// spoil does nothing: TestFaults needs the fake driver.
func spoil() {}
