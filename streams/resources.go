package streams

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// Resources are closed together, the last one first, but streams before all else: what is still
// queued on them after an error may use the rest.
type Resources []io.Closer

// Add remembers what has to be closed.
func (c *Resources) Add(closers ...io.Closer) { *c = append(*c, closers...) }

// Close closes everything, see Resources. Streams of several devices are waited for together.
// Closing twice is no error.
func (c *Resources) Close() error {
	var all []*Stream
	for _, x := range slices.Backward(*c) {
		if s, ok := x.(*Stream); ok {
			all = append(all, s)
		}
	}
	errs := []error{closeStreams(all)}
	for _, x := range slices.Backward(*c) {
		if _, ok := x.(*Stream); !ok {
			errs = append(errs, x.Close())
		}
	}
	*c = nil
	return errors.Join(errs...)
}

// closeStreams closes the streams of each device in their order, and all devices at the same time:
// where several hang, they are waited for together.
func closeStreams(all []*Stream) error {
	byDevice := map[*Device][]*Stream{}
	for _, s := range all {
		if s != nil {
			byDevice[s.device] = append(byDevice[s.device], s)
		}
	}
	var mu sync.Mutex
	var errs []error
	var group sync.WaitGroup
	for _, some := range byDevice {
		group.Go(func() {
			for _, s := range some {
				if err := s.Close(); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
