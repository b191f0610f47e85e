//go:build race || !cgo

package testdevices

// again means that the tests run once more, for the race detector or for a build without cgo.
const again = true
