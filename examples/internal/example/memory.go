package example

import (
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/halox/halox/streams"
)

const (
	chunkBytes = 32 << 20         // copied to or from a device at once
	copyLimit  = 30 * time.Second // for one chunk
)

// FillMemory writes values to memory of a device, chunk by chunk: fill sets values[0], which is element first of the
// memory, and so on. Several goroutines call it at once.
func FillMemory[T any](to streams.Span, fill func(values []T, first int64)) error {
	return chunks[T](to, func(s *streams.Stream, host, device streams.Span, values []T, first int64) error {
		Parallel(int64(len(values)), func(lo, hi int64) { fill(values[lo:hi], first+lo) })
		return errors.Join(s.Copy(device, host), s.Sync(copyLimit))
	})
}

// Parallel splits 0 <= i < n into half-open ranges and calls f for each, on all cores.
func Parallel(n int64, f func(lo, hi int64)) {
	const least = 1 << 12 // elements that are worth a goroutine
	parts := min(int64(runtime.GOMAXPROCS(0)), n/least+1)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { f(Part(n, parts, i), Part(n, parts, i+1)) })
	}
	all.Wait()
}

// ReadMemory returns the values in memory of a device.
func ReadMemory[T any](from streams.Span) (all []T, err error) {
	err = chunks[T](from, func(s *streams.Stream, host, device streams.Span, values []T, _ int64) error {
		err := errors.Join(s.Copy(host, device), s.Sync(copyLimit))
		all = append(all, values...)
		return err
	})
	return all, err
}

// chunks calls each for the chunks of memory of a device, in order, with pinned memory of the same size and its values.
func chunks[T any](
	whole streams.Span, each func(s *streams.Stream, host, device streams.Span, values []T, first int64) error,
) (err error) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	d := whole.Memory.Device()
	s, err := d.NewStream(streams.Normal)
	if err != nil {
		return err
	}
	open.Add(s)
	host, err := d.AllocPinned(max(size, min(whole.Length, chunkBytes)))
	if err != nil {
		return err
	}
	open.Add(host)
	for at := int64(0); at < whole.Length; at += chunkBytes {
		n := min(chunkBytes, whole.Length-at)
		values := streams.View[T](host.Bytes()[:n])
		if err := each(s, host.Span(0, n), whole.Memory.Span(whole.Offset+at, n), values, at/size); err != nil {
			return err
		}
	}
	return nil
}

// Alloc allocates memory of a device that is freed with other resources.
func Alloc(with *streams.Resources, d *streams.Device, bytes int64) (*streams.Memory, error) {
	m, err := d.Alloc(bytes)
	if err == nil {
		with.Add(m)
	}
	return m, err
}
