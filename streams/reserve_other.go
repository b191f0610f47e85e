//go:build !unix

package streams

import "fmt"

// reserve returns zeroed bytes. On this system they take memory.
func reserve(bytes int64) ([]byte, error) {
	if bytes > addressSpace {
		return nil, fmt.Errorf("%w: %s of address space", ErrOutOfMemory, Size(bytes))
	}
	return make([]byte, bytes), nil
}

// release leaves the bytes to the garbage collector.
func release([]byte) error { return nil }
