package halo

import (
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// manyWorkers is a number of threads that leaves none a core to spin on.
const manyWorkers = 1 << 10

// across is what an exchanger needs for messages to and from other processes.
type across struct {
	processes *mpi.Processes
	waits     *streams.WorkerGroup // for waits of one thread that drives all
	first     int                  // of its tags
	next      map[[2]int]int       // by sending and receiving process: how many messages were made ready
}

// tag returns that of the next message between two processes. Both go through the messages
// between them in the order of the plan.
func (a *across) tag(from, to int) int {
	ends := [2]int{from, to}
	tag := a.first + a.next[ends]
	a.next[ends]++
	return tag
}
