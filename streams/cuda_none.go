//go:build !linux || !cgo

package streams

import "fmt"

// CUDAPlatform returns an error: CUDA needs Linux and a build with cgo.
func CUDAPlatform(library string) (*Platform, error) {
	if library != "" {
		return nil, fmt.Errorf("%w: %s: CUDA needs Linux and a build with cgo", ErrNoLibrary, library)
	}
	return nil, fmt.Errorf("%w: CUDA needs Linux and a build with cgo", ErrNoDriver)
}
