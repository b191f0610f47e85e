//go:build !linux || !cgo

package cudafake

import "testing"

// Opens tells whether drivers can be opened: not without cgo.
const Opens = false

// Ran gives no kernel: without cgo no driver is loaded.
func Ran(testing.TB, string) (kernels []string) { return nil }
