package p2p

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/streams"
)

// Path is how a message travels between two devices.
type Path string

// The paths. Auto stands for the best that the link of a message can do.
const (
	Auto   Path = "auto"
	Peer   Path = "peer"   // asynchronous peer copy
	Direct Path = "direct" // a kernel of the sender stores into the receiver's memory
	Staged Path = "staged" // through pinned host memory
	MPI    Path = "mpi"    // to another process, see package p2p/mpi; it is not chosen by name
)

// Traits is what a path is. Who has to tell paths apart asks for a trait, and names a path only
// where one was chosen, as a default or for a scheme. The zero value is that of a path between any
// two devices, whose messages are packed, moved by a Route and unpacked.
type Traits struct {
	Access bool // the devices reach each other's memory: the link between them is usable
	Stored bool // a kernel of the sender stores where messages arrive: they need no Route, and mostly no buffers
	Pinned int  // buffers of pinned host memory, of the sender, that a message goes through one after the other
	Tried  bool // a search for the fastest scheme tries it, where all links are usable

	// Rate is about how many bytes per second leave a device. It decides whether a scheme overlaps an exchange.
	Rate float64
}

// paths are those but Auto, in the order in which they are shown. A new one has its line here, and
// its copies in layouts; the tests of p2p add some.
var paths = []knownPath{
	{Staged, Traits{Pinned: 1, Rate: 25e9}},
	{Peer, Traits{Access: true, Tried: true, Rate: 300e9}},
	{Direct, Traits{Access: true, Stored: true, Tried: true, Rate: 300e9}},
}

type knownPath struct {
	name Path
	Traits
}

// Traits returns those of the path; of Auto and of what is no path, none.
func (p Path) Traits() Traits {
	for _, known := range paths {
		if known.name == p {
			return known.Traits
		}
	}
	return Traits{}
}

// mpiRate is that of messages to other processes.
const mpiRate = 10e9

// Rate returns about how many bytes per second leave a device over the path. It returns an error for Auto, for a path
// that is not known, and for one whose line in paths has no rate.
func (p Path) Rate() (float64, error) {
	if p == MPI {
		return mpiRate, nil
	}
	if rate := p.Traits().Rate; rate > 0 {
		return rate, nil
	}
	return 0, fmt.Errorf("p2p: path %q has no rate", p)
}

// Paths returns all paths but Auto, in the order in which they are shown.
func Paths() (all []Path) {
	for _, known := range paths {
		all = append(all, known.name)
	}
	return all
}

// LinksFirst returns all paths but Auto, those over links before the others: of paths that take
// equally long, Auto takes the first.
func LinksFirst() []Path {
	all := Paths()
	slices.SortStableFunc(all, func(a, b Path) int {
		switch {
		case a.Traits().Access == b.Traits().Access:
			return 0
		case a.Traits().Access:
			return -1
		}
		return 1
	})
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

// layouts lay the legs of a route, by path. Paths that kernels store along have none.
var layouts = map[Path]func(r *Route) error{Peer: (*Route).straight, Staged: (*Route).throughHost}

// NewRoute makes a route between spans of equal length.
func NewRoute(path Path, dst, src streams.Span) (*Route, error) {
	r := &Route{dst: dst, src: src}
	if dst.Memory == nil || src.Memory == nil || dst.Length != src.Length || dst.Length < 1 {
		return nil, fmt.Errorf("p2p: a route to %v from %v", dst, src)
	}
	lay, ok := layouts[path]
	if !ok {
		return nil, fmt.Errorf("p2p: a route along %q; it must be along %s", path, routed())
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
		if layouts[p] != nil {
			names = append(names, string(p))
		}
	}
	return strings.Join(names, " or ")
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

// Pull queues the receiver's part, which is empty for a peer copy.
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
