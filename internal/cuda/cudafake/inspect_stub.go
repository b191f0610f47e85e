//go:build !linux || !cgo

package cudafake

import "testing"

// Ran gives no kernel: without cgo no driver is loaded.
func Ran(testing.TB, string) (kernels []string) { return nil }
