//go:build !race && cgo

package testdevices

const again = false
