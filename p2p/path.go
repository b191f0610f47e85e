package p2p

import "fmt"

// Path is how a message travels between two devices.
type Path string

// The paths. Auto stands for the best that the link of a message can do.
const (
	Auto   Path = "auto"
	Peer   Path = "peer"   // asynchronous peer copy
	Staged Path = "staged" // through pinned host memory
)

// ParsePath returns the path of that name.
func ParsePath(name string) (Path, error) {
	switch p := Path(name); p {
	case Auto, Peer, Staged:
		return p, nil
	}
	return "", fmt.Errorf("p2p: %q is no path: auto, peer or staged", name)
}
