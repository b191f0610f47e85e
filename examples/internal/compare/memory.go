package compare

import (
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"github.com/halox/halox/streams"
)

// chunk is how many bytes are on the way to a device or back at once.
const chunk = 32 << 20

// Fill writes values to memory of a device, in pieces: fill sets those from the first on. Several threads call it.
func Fill[T any](to streams.Span, fill func(values []T, first int64)) error {
	return chunks[T](to, func(s *streams.Stream, host streams.Span, device streams.Span, values []T, first int64) error {
		Parallel(int64(len(values)), func(lo, hi int64) { fill(values[lo:hi], first+lo) })
		return errors.Join(s.Copy(device, host), s.Sync(limit))
	})
}

// Parallel calls f for parts of n things that make up all, by several threads of the host.
func Parallel(n int64, f func(lo, hi int64)) {
	const least = 1 << 12 // things that are worth a thread
	parts := min(int64(runtime.GOMAXPROCS(0)), n/least+1)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { f(Part(n, parts, i), Part(n, parts, i+1)) })
	}
	all.Wait()
}

// Read reads all values of some memory of a device.
func Read[T any](from streams.Span) (all []T, err error) {
	err = chunks[T](from, func(s *streams.Stream, host streams.Span, device streams.Span, values []T, _ int64) error {
		err := errors.Join(s.Copy(host, device), s.Sync(limit))
		all = append(all, values...)
		return err
	})
	return all, err
}

// chunks calls each for pieces of memory of a device, in order, with pinned memory of the same size and its values.
func chunks[T any](whole streams.Span, each func(s *streams.Stream, host, device streams.Span, values []T, first int64) error) (err error) {
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
	host, err := d.AllocPinned(max(size, min(whole.Length, chunk)))
	if err != nil {
		return err
	}
	open.Add(host)
	for at := int64(0); at < whole.Length; at += chunk {
		n := min(chunk, whole.Length-at)
		values := streams.View[T](host.Bytes()[:n])
		if err := each(s, host.Span(0, n), whole.Memory.Span(whole.Offset+at, n), values, at/size); err != nil {
			return err
		}
	}
	return nil
}

// Alloc allocates memory of a device that is freed with others.
func Alloc(with *streams.Resources, d *streams.Device, bytes int64) (*streams.Memory, error) {
	m, err := d.Alloc(bytes)
	if err == nil {
		with.Add(m)
	}
	return m, err
}

// Opened returns a problem, or, after an error, closes it.
func Opened(p Problem, err error) (Problem, error) {
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}
