package p2p

import (
	"slices"
	"strings"
)

// Path is how a message travels between two devices.
type Path string

// The paths. Auto stands for the best that the link of a message can do.
const (
	Auto   Path = "auto"
	Peer   Path = "peer"   // asynchronous peer copy
	Direct Path = "direct" // a kernel of the sender stores into the receiver's memory
	Staged Path = "staged" // through pinned host memory
	MPI    Path = "mpi"    // to another process, see package p2p/mpi; nobody chooses it
)

// Traits is what a path is. Who has to tell paths apart asks for a trait, and names a path only
// where one was chosen, as a default or for a scheme. The zero value is that of a path between any
// two devices, whose messages are packed, moved by a Route and unpacked.
type Traits struct {
	Access bool // the devices reach each other's memory: the link between them is usable
	Stored bool // a kernel of the sender stores where messages arrive: they need no Route, and mostly no buffers
	Pinned int  // buffers of pinned host memory, of the sender, that a message goes through one after the other
	Tried  bool // a search for the fastest scheme tries it, where all links are usable
}

// paths are those but Auto, in the order in which they are shown. A new one has its line here, and
// its copies in ways; the tests of p2p add some.
var paths = []knownPath{
	{Staged, Traits{Pinned: 1}},
	{Peer, Traits{Access: true, Tried: true}},
	{Direct, Traits{Access: true, Stored: true, Tried: true}},
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
