package p2p

import (
	"errors"
	"fmt"
	"strings"

	"github.com/halox/halox/streams"
)

// Path is the way a message is transferred between two devices.
type Path string

// The paths. Auto selects the best path that the link of a message supports.
const (
	Auto   Path = "auto"
	Peer   Path = "peer"   // asynchronous peer copy
	Direct Path = "direct" // a kernel of the sender stores into the receiver's memory
	Staged Path = "staged" // through pinned host memory
	MPI    Path = "mpi"    // to another process, see package p2p/mpi; cannot be chosen by name
)

// Traits describes a path. Code that distinguishes paths checks a trait, and names a path only as a default or for
// a scheme. The zero value describes a path between any two devices, whose messages are packed, moved by a Route
// and unpacked.
type Traits struct {
	Access bool // the devices access each other's memory, so the link between them must be usable
	Stored bool // a kernel of the sender stores directly into the destination: no Route, and mostly no buffers
	Pinned int  // number of buffers of pinned host memory, of the sender, that a message passes through
	Tried  bool // tried by a search for the fastest scheme, if all links are usable

	// Rate is the approximate rate at which a device sends, in bytes per second. It determines whether a scheme
	// overlaps an exchange.
	Rate float64
}

// paths are all paths except Auto, in display order. Of equally fast paths, Auto selects the first. A new path has
// one entry here, and its copies in layouts; the tests of p2p add some.
var paths = []knownPath{
	{Peer, Traits{Access: true, Tried: true, Rate: 300e9}},
	{Direct, Traits{Access: true, Stored: true, Tried: true, Rate: 300e9}},
	{Staged, Traits{Pinned: 1, Rate: 25e9}},
}

type knownPath struct {
	name Path
	Traits
}

// Traits returns the traits of the path; zero for Auto and unknown paths.
func (p Path) Traits() Traits {
	for _, known := range paths {
		if known.name == p {
			return known.Traits
		}
	}
	return Traits{}
}

// mpiRate is the rate for messages to other processes.
const mpiRate = 10e9

// Rate returns the approximate rate at which a device sends over the path, in bytes per second. It returns an
// error for Auto, for an unknown path, and for one without a rate in paths.
func (p Path) Rate() (float64, error) {
	if p == MPI {
		return mpiRate, nil
	}
	if rate := p.Traits().Rate; rate > 0 {
		return rate, nil
	}
	return 0, fmt.Errorf("p2p: path %q has no rate", p)
}

// Paths returns all paths except Auto, in display order.
func Paths() (all []Path) {
	for _, known := range paths {
		all = append(all, known.name)
	}
	return all
}

// Choices writes Auto and some paths, as "auto, peer, direct or staged".
func Choices(paths []Path) string {
	names := []string{string(Auto)}
	for _, p := range paths {
		names = append(names, string(p))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Route moves one block of bytes from one device to another along one path, repeatedly. Push is queued on a stream
// of the sender and Pull, once Push is done, on a stream of the receiver. The caller ensures that order, and that
// the next Push does not overtake the last Pull.
type Route struct {
	dst, src   streams.Span
	push, pull []leg
	hosts      streams.Resources // pinned memory of staged blocks
}

// leg is one copy of a route.
type leg struct{ dst, src streams.Span }

// layouts create the legs of a route, by path. Paths that store directly have none.
var layouts = map[Path]func(r *Route) error{Peer: (*Route).straight, Staged: (*Route).throughHost}

// NewRoute creates a route between spans of equal length. It returns an error if the path has no routes.
func NewRoute(path Path, dst, src streams.Span) (*Route, error) {
	r := &Route{dst: dst, src: src}
	if dst.Memory == nil || src.Memory == nil || dst.Length != src.Length || dst.Length < 1 {
		return nil, fmt.Errorf("p2p: route: spans must be valid and of equal length, got %v and %v", dst, src)
	}
	lay, ok := layouts[path]
	if !ok {
		return nil, fmt.Errorf("p2p: route: path must be %s, got %q", routed(), path)
	}
	if err := lay(r); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// routed returns the names of the paths that have routes.
func routed() string {
	var names []string
	for _, p := range Paths() {
		if layouts[p] != nil {
			names = append(names, string(p))
		}
	}
	return strings.Join(names, " or ")
}

// straight is one copy by the sender, over the link.
func (r *Route) straight() error {
	r.push = []leg{{r.dst, r.src}}
	return nil
}

// throughHost is a copy by the sender to pinned host memory, and one by the receiver from there.
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

// Copies returns the number of copies that the sender and the receiver queue.
func (r *Route) Copies() (push, pull int) { return len(r.push), len(r.pull) }

// Push queues the part of the sender.
func (r *Route) Push(s *streams.Stream) error { return queue(s, r.push) }

// Pull queues the part of the receiver, which is empty for a peer copy.
func (r *Route) Pull(s *streams.Stream) error { return queue(s, r.pull) }

func queue(s *streams.Stream, legs []leg) error {
	for _, l := range legs {
		if err := s.Copy(l.dst, l.src); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the memory of the route. Closing twice is allowed.
func (r *Route) Close() error { return r.hosts.Close() }
