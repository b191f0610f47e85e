//go:build unix

package streams

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reserve returns zeroed bytes that take no memory until they are written.
func reserve(bytes int64) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("%w: %s of address space: %w", ErrOutOfMemory, Size(bytes), err)
	}
	return b, nil
}

// release frees the bytes of reserve.
func release(bytes []byte) error {
	if bytes == nil {
		return nil
	}
	return unix.Munmap(bytes)
}
