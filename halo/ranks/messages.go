package ranks

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/host"
	"github.com/halox/halox/internal/poll"
	"github.com/halox/halox/p2p/mpi"
)

// message is a request of one process to another, possibly followed by bytes. Its kind defines the meaning of
// the numbers.
type message struct {
	what        messageKind
	to, from    int64 // ranks of the world on CPU devices, otherwise devices
	slot, at, n int64
}

type messageKind int64

const (
	msgEnded   messageKind = iota // the run has ended
	msgApplied                    // n more storing messages are complete

	// For proxies of GPUs. to is a device, at an address of it.
	msgStore        // the bytes
	msgRaise        // a count
	msgRaiseBarrier // the same for a barrier
	msgFetch        // n bytes, for command number slot of device from
	msgFetched      // the bytes, for command number slot of device to

	// For ranks on CPU devices. to is a rank, at an offset in its window number slot.
	msgPut    // the bytes
	msgPacket // the bytes, each 4 with number n
	msgGet    // n bytes, for rank from
	msgGot    // the bytes, for rank to
	msgWindow // rank from has a window of n bytes in this slot
	msgNotify // tag at, of window number slot, by rank from
	msgArrive // all ranks of the process have reached the n-th barrier of all
	msgValues // the bytes at this offset of the values of rank from for collective number slot, rankCall n
	msgSent   // the bytes: the next message of channel number slot
	msgRead   // n messages of channel number slot have been read
)

// stores reports whether a barrier waits until the message is complete.
func (k messageKind) stores() bool {
	return k == msgStore || k == msgPut || k == msgPacket
}

// space returns the bytes of a window that a message with a body of some bytes covers.
func (k messageKind) space(bytes int64) int64 {
	if k == msgPacket {
		return 2 * bytes
	}
	return bytes
}

const messageBytes = int(unsafe.Sizeof(message{}))

// bytes returns the message as it is sent.
func (msg *message) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(msg)), messageBytes)
}

// parseMessage returns a message and the bytes that follow it.
func parseMessage(record []byte) (msg message, body []byte) {
	n := copy(msg.bytes(), record)
	return msg, record[n:]
}

// remote is the other processes of a world, and the queue of messages to and from them during a run.
type remote struct {
	processes *mpi.Processes
	queue     *mpi.Queue
	sent      []atomic.Uint64 // by process: storing messages of this run
	applied   []atomic.Uint64 // how many of them are complete
	owed      []int64         // by process: complete messages not yet acknowledged
	grace     time.Duration   // limit for other processes to end a run that has ended here
}

// errOtherProcess is a placeholder for the error of another process, which Run replaces.
var errOtherProcess = errors.New("ranks: another process has ended the run")

func newRemote(p *mpi.Processes, limit time.Duration) (*remote, error) {
	queue, err := p.NewQueue()
	if err != nil {
		return nil, err
	}
	return &remote{
		processes: p, queue: queue, grace: limit + 20*time.Second,
		sent: make([]atomic.Uint64, p.Size()), applied: make([]atomic.Uint64, p.Size()), owed: make([]int64, p.Size()),
	}, nil
}

// begin begins a run. All processes are ready for it.
func (r *remote) begin() error {
	for p := range r.sent {
		r.sent[p].Store(0)
		r.applied[p].Store(0)
		r.owed[p] = 0
	}
	return r.queue.Begin()
}

// post queues a message to a process, which the next flush sends.
func (r *remote) post(to int, msg message, body []byte) error {
	if msg.what.stores() {
		r.sent[to].Add(1)
	}
	return r.queue.Put(to, msg.bytes(), body)
}

// postAll queues a message to all other processes.
func (r *remote) postAll(msg message) error {
	for p := range r.sent {
		if p == r.processes.Rank {
			continue
		}
		if err := r.post(p, msg, nil); err != nil {
			return err
		}
	}
	return nil
}

// isSettled reports whether the first storing messages, up to number sent, are complete at a process, or the
// process has ended the run.
func (r *remote) isSettled(process int, sent uint64) bool {
	return r.applied[process].Load() >= sent || r.queue.HasEnded(process)
}

// allSettled reports whether all storing messages are complete.
func (r *remote) allSettled() bool {
	for p := range r.sent {
		if p != r.processes.Rank && !r.isSettled(p, r.sent[p].Load()) {
			return false
		}
	}
	return true
}

// take calls do for each message that has arrived, and counts the messages to acknowledge.
func (r *remote) take(do func(from int, msg message, body []byte) error) (some bool, err error) {
	return r.queue.Take(func(from int, record []byte) error {
		if len(record) < messageBytes {
			return fmt.Errorf("ranks: a message has only %d bytes", len(record))
		}
		msg, body := parseMessage(record)
		if msg.what == msgApplied {
			r.applied[from].Add(uint64(msg.n))
			return nil
		}
		if msg.what.stores() {
			r.owed[from]++
		}
		return do(from, msg, body)
	})
}

// answer acknowledges all messages that were taken, and flushes.
func (r *remote) answer() error {
	for p, n := range r.owed {
		if n == 0 {
			continue
		}
		r.owed[p] = 0
		if err := r.post(p, message{what: msgApplied, n: n}, nil); err != nil {
			return err
		}
	}
	return r.queue.Flush()
}

// isOver ends the queue of a run that has ended here at time since, and reports whether all processes have
// ended the run.
func (r *remote) isOver(since time.Time) (bool, error) {
	if err := r.queue.End(); err != nil {
		return false, err
	}
	if r.queue.IsOver() {
		return true, nil
	}
	if time.Since(since) > r.grace {
		for p := range r.sent {
			if p != r.processes.Rank && !r.queue.HasEnded(p) {
				return false, r.processes.Fail(
					fmt.Errorf("ranks: %s has not ended the run within %v", r.processes.Name(p), r.grace),
				)
			}
		}
	}
	return false, nil
}

// serve calls do repeatedly until it has nothing left after stop is set and the run is over on all processes,
// or until it fails. Without other processes, r is nil. do returns some if it has done something, and left if
// something has to wait.
func (r *remote) serve(stop *atomic.Bool, do func() (some, left bool, err error)) error {
	var since time.Time // when the ranks of this process ended
	policy := servingLoops()
	for idle := policy.Begin(); ; {
		stopping := stop.Load()
		some, left, err := do()
		if err != nil {
			return err
		}
		if stopping && !some && !left {
			if r == nil {
				return nil
			}
			if since.IsZero() {
				since = time.Now()
			}
			if over, err := r.isOver(since); over || err != nil {
				return err
			}
		}
		if some {
			idle = policy.Begin()
		} else {
			idle.Pause()
		}
	}
}

// Close frees the queue.
func (r *remote) Close() error { return r.queue.Close() }

// Wait policies of loops: for one of many loops per process, and for one of a few, which keeps its thread
// while it sleeps. Go's timer sleeps at least a millisecond if a process only waits for GPUs.
var (
	manyLoops = poll.Policy{
		Yields: 50, Share: 64, Min: time.Microsecond, Max: 200 * time.Microsecond, Sleep: time.Sleep,
	}
	fewLoops = poll.Policy{Yields: 50, Share: 64, Min: time.Microsecond, Max: 200 * time.Microsecond}
)

// servingLoops is the wait policy of a loop that serves others. With few cores, frequent wake-ups would take
// time from the loops that it serves.
func servingLoops() *poll.Policy {
	const fewCores = 4
	if host.Threads() > fewCores {
		return &fewLoops
	}
	return &manyLoops
}
