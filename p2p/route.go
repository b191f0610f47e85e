package p2p

import (
	"errors"
	"fmt"
	"strings"

	"github.com/halox/halox/streams"
)

// Route moves one block of bytes from one device to another along one path,
// any number of times. Push is queued on a stream of the sender and Pull, once
// Push is done, on a stream of the receiver; who uses a route sees to that
// order, and to the next Push not overtaking the last Pull.
type Route struct {
	dst, src   streams.Span
	push, pull []leg
	hosts      streams.Resources // pinned memory, where blocks are on their way
}

// leg is one copy of a route.
type leg struct{ dst, src streams.Span }

// ways lay the legs of a route, by path. What is stored by kernels has none.
var ways = map[Path]func(r *Route) error{Peer: (*Route).straight, Staged: (*Route).throughHost}

// NewRoute makes a route between spans of equal length.
func NewRoute(path Path, dst, src streams.Span) (*Route, error) {
	r := &Route{dst: dst, src: src}
	if dst.Memory == nil || src.Memory == nil || dst.Length != src.Length || dst.Length < 1 {
		return nil, fmt.Errorf("p2p: a route to %v from %v", dst, src)
	}
	lay, ok := ways[path]
	if !ok {
		return nil, fmt.Errorf("p2p: a route along %q; %s are possible", path, routed())
	}
	if err := lay(r); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// routed names the paths that have routes.
func routed() string {
	var names []string
	for _, p := range LinksFirst() {
		if ways[p] != nil {
			names = append(names, string(p))
		}
	}
	return strings.Join(names, " and ")
}

// straight is one copy of the sender's, over the link.
func (r *Route) straight() error {
	r.push = []leg{{r.dst, r.src}}
	return nil
}

// throughHost is a copy of the sender's to pinned host memory, and one of the receiver's from
// there.
func (r *Route) throughHost() error {
	host, err := r.host()
	r.push, r.pull = []leg{{host, r.src}}, []leg{{r.dst, host}}
	return err
}

// host allocates pinned memory of the sender for the block.
func (r *Route) host() (streams.Span, error) {
	m, err := r.src.Memory.Device().AllocPinned(r.src.Length)
	if err != nil {
		return streams.Span{}, err
	}
	r.hosts.Add(m)
	return m.All(), nil
}

// Copies returns how many the sender and the receiver queue.
func (r *Route) Copies() (push, pull int) { return len(r.push), len(r.pull) }

// Push queues the sender's part.
func (r *Route) Push(s *streams.Stream) error { return queue(s, r.push) }

// Pull queues the receiver's part, of which a peer copy needs none.
func (r *Route) Pull(s *streams.Stream) error { return queue(s, r.pull) }

func queue(s *streams.Stream, legs []leg) error {
	for _, l := range legs {
		if err := s.Copy(l.dst, l.src); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what the route holds. Closing twice is no error.
func (r *Route) Close() error { return r.hosts.Close() }
