package p2p

import (
	"fmt"

	"github.com/halox/halox/streams"
)

// Route moves one block of bytes from one device to another along one path,
// any number of times. Push is queued on a stream of the sender and Pull, once
// Push is done, on a stream of the receiver; who uses a route sees to that
// order, and to the next Push not overtaking the last Pull.
type Route struct {
	path     Path
	dst, src streams.Span
	host     *streams.Memory // Staged: the block on its way
}

// NewRoute makes a route between spans of equal length.
func NewRoute(path Path, dst, src streams.Span) (*Route, error) {
	r := &Route{path: path, dst: dst, src: src}
	if dst.Length != src.Length || dst.Length < 1 {
		return nil, fmt.Errorf("p2p: a route to %v from %v", dst, src)
	}
	switch path {
	case Peer:
		return r, nil
	case Staged:
		var err error
		r.host, err = src.Memory.Device().AllocPinned(src.Length)
		return r, err
	}
	return nil, fmt.Errorf("p2p: a route along %q; peer and staged are possible", path)
}

// Push queues the sender's part.
func (r *Route) Push(s *streams.Stream) error {
	if r.path == Staged {
		return s.Copy(r.host.All(), r.src)
	}
	return s.Copy(r.dst, r.src)
}

// Close frees what the route holds. Closing twice is no error.
func (r *Route) Close() error {
	if r.host == nil {
		return nil
	}
	return r.host.Close()
}

// Pull queues the receiver's part, of which a peer copy needs none.
func (r *Route) Pull(s *streams.Stream) error {
	if r.path == Staged {
		return s.Copy(r.dst, r.host.All())
	}
	return nil
}
