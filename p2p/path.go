package p2p

// Path is how a message travels between two devices.
type Path string

// The paths. Auto stands for the best that the link of a message can do.
const (
	Auto   Path = "auto"
	Peer   Path = "peer"   // asynchronous peer copy
	Staged Path = "staged" // through pinned host memory
)
