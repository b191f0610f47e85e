package streams

import (
	"errors"
	"io"
	"slices"
)

// Resources are closed together, the last one first, but streams before all else: what is still
// queued on them after an error may use the rest.
type Resources []io.Closer

// Add remembers what has to be closed.
func (c *Resources) Add(closers ...io.Closer) { *c = append(*c, closers...) }

// Close closes everything, see Resources. Closing twice is no error.
func (c *Resources) Close() error {
	var errs []error
	for _, x := range slices.Backward(*c) {
		if s, ok := x.(*Stream); ok {
			errs = append(errs, s.Close())
		}
	}
	for _, x := range slices.Backward(*c) {
		errs = append(errs, x.Close())
	}
	*c = nil
	return errors.Join(errs...)
}
