package p2p

// Path is how a message travels between two devices.
type Path string

// The paths. Auto stands for the best that the link of a message can do.
const (
	Auto   Path = "auto"
	Peer   Path = "peer"   // asynchronous peer copy
	Direct Path = "direct" // a kernel of the sender stores into the receiver's memory
	Staged Path = "staged" // through pinned host memory
)

// Paths returns all paths but Auto, in the order in which they are shown.
func Paths() []Path { return []Path{Staged, Peer, Direct} }
