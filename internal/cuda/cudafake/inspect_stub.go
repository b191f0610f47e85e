//go:build !linux || !cgo

package cudafake

import "testing"

// Opens reports whether drivers can be opened: not without cgo.
const Opens = false

// Ran returns nil: without cgo no driver is loaded.
func Ran(testing.TB, string) (kernels []string) { return nil }
