package ranks

import "sync/atomic"

// inbox is where a rank of a host device gets the values of a peer, all at once.
type inbox struct {
	full   atomic.Bool
	values []byte
}
