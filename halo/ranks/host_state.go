package ranks

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/streams"
)

// hostState is shared by the ranks of a run on CPU devices. All runs of a world use the same, so that a run
// allocates nothing.
type hostState struct {
	*topology
	limit    time.Duration
	log      *logger
	codes    map[int64]error       // error codes of the program
	data     []any                 // by device: a pointer to the caller's data
	counts   [][Tags]atomic.Uint64 // notification counts by rank of the world
	arrivals []atomic.Uint64       // at barriers of each device, and of this process
	others   arrivals              // of other processes, at barriers of all ranks
	replies  []hostReply           // by rank of this process
	queues   []hostQueue           // notifications with their source; nil: they are only counted
	given    [2][2][]given         // values of collectives, by communicator, parity and rank of the world
	channels []*hostChannel
	windows  [2 * MaxWindows][][]byte
	sizes    [2 * MaxWindows][]int64 // sizes of windows of other processes
	took     [][]int64               // timings by device
	over     atomic.Bool
	failing  sync.Mutex
	failed   error
}

// topology is the devices of a world and their ranks.
type topology struct {
	devices []*streams.Device // devices of this process
	owners  []int             // process by device of the world
	before  int               // number of devices of processes before this one
	remote  *remote           // the other processes; nil if there are none
	ranks   int               // ranks per device
}

// Size returns the number of ranks of all processes.
func (t *topology) Size() int { return t.ranks * len(t.owners) }

// processOf returns the process of a rank of the world, -1 for this one.
func (t *topology) processOf(rank int) int {
	if process := t.owners[rank/t.ranks]; t.remote != nil && process != t.remote.processes.Rank {
		return process
	}
	return -1
}

// newHostState returns the state of the ranks of a world, with queues or without.
func newHostState(t *topology, queues bool) *hostState {
	n, size := len(t.devices), t.Size()
	h := &hostState{topology: t}
	h.data, h.took = make([]any, n), make([][]int64, n)
	h.counts, h.arrivals = make([][Tags]atomic.Uint64, size), make([]atomic.Uint64, n+1)
	h.replies = make([]hostReply, n*h.ranks)
	for c := range h.given {
		h.given[c] = [2][]given{make([]given, size), make([]given, size)}
	}
	if queues {
		h.queues = make([]hostQueue, size)
	}
	for slot := range h.windows {
		h.windows[slot], h.sizes[slot] = make([][]byte, size), make([]int64, size)
	}
	return h
}

// begin resets the state for a run: counts begin with first; presets are windows of World.NewWindow, by slot.
func (h *hostState) begin(first uint64, presets map[int][][]byte, sizes map[int][]int64, channels []channel) {
	h.failed = nil
	h.over.Store(false)
	h.others.begin()
	for i := range h.arrivals {
		h.arrivals[i].Store(0)
	}
	for rank := range h.counts {
		for tag := range h.counts[rank] {
			h.counts[rank][tag].Store(first)
		}
	}
	for i := range h.queues {
		h.queues[i].clear()
	}
	for _, turns := range h.given {
		for rank := range turns[0] {
			turns[0][rank].number.Store(0)
			turns[1][rank].number.Store(0)
		}
	}
	for slot := range h.windows {
		clear(h.windows[slot])
		copy(h.windows[slot], presets[slot])
		copy(h.sizes[slot], sizes[slot])
	}
	for i := len(h.channels); i < len(channels); i++ {
		h.channels = append(h.channels, newHostChannel(channels[i]))
	}
	for _, c := range h.channels {
		c.begin(first)
	}
	for d := range h.took {
		h.took[d] = h.took[d][:0]
	}
}

// fail ends the run because a rank has failed; the first failure is the error.
func (h *hostState) fail(f failure) {
	h.end(f.describe(h.devices[f.rank/h.ranks-h.before].String(), h.limit))
}

func (h *hostState) end(err error) {
	h.failing.Lock()
	defer h.failing.Unlock()
	if h.over.Load() {
		return
	}
	h.failed = err
	h.over.Store(true)
	if h.remote != nil && err != errOtherProcess {
		_ = h.remote.postAll(message{what: msgEnded}) // a failure of the queue is reported on all processes
	}
}

// notify delivers a notification from a device to a rank of this process. It returns false if the queue is full.
func (h *hostState) notify(to, device int, n envelope) bool {
	if h.queues != nil {
		return h.queues[to].add(unread{n, device})
	}
	h.counts[to][n.tag].Add(1)
	return true
}

// channel is the arguments of NewChannel, and the addresses of the channel on GPUs.
type channel struct {
	from, to, slots, bytes int
	ring, credit           uint64 // addresses
}

// words returns the number of 8-byte words of a slot of the ring.
func (c channel) words() int { return (c.bytes/4 + 1) / 2 * 2 }

// hostChannel is a channel between ranks on CPU devices.
type hostChannel struct {
	channel
	first      uint64 // the number of the first message
	messages   [][]byte
	sent, read atomic.Uint64
}

func newHostChannel(c channel) *hostChannel {
	made := &hostChannel{channel: c, messages: make([][]byte, c.slots)}
	for k := range made.messages {
		made.messages[k] = make([]byte, 0, c.bytes)
	}
	return made
}

// begin numbers messages starting with first.
func (c *hostChannel) begin(first uint64) {
	c.first = first
	c.sent.Store(first)
	c.read.Store(first)
}

func (c *hostChannel) slot(position uint64) *[]byte {
	return &c.messages[position%uint64(len(c.messages))]
}

// put appends a message; the ring must have a free slot.
func (c *hostChannel) put(message []byte) {
	n := c.sent.Load()
	slot := c.slot(n)
	*slot = append((*slot)[:0], message...)
	c.sent.Store(n + 1)
}

// envelope is the window, source and tag of a notification or, with Any and anySlot, a pattern for
// notifications.
type envelope struct{ slot, source, tag int }

var none = envelope{anySlot, Any, Any}

func (n envelope) matches(m envelope) bool {
	return (m.slot == anySlot || m.slot == n.slot) && (m.source == Any || m.source == n.source) &&
		(m.tag == Any || m.tag == n.tag)
}

// hostQueue is the notifications that a rank has not taken, in order of arrival. As in kernels, it has read
// some of them, and there are slots for `queued` unread ones from each device of this process.
type hostQueue struct {
	mu     sync.Mutex
	kept   []envelope // read, and not taken
	unread []unread
	from   [MaxDevices]int // unread, by device
	drops  bool            // new ones are dropped: the rank is at its last barrier
}

// unread is a notification and the device that sent it, elsewhere for a device of another process.
type unread struct {
	envelope
	device int
}

const otherProcess = -1

func (q *hostQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kept, q.unread, q.from, q.drops = q.kept[:0], q.unread[:0], [MaxDevices]int{}, false
}

// drop discards notifications from now on.
func (q *hostQueue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drops = true
}

// add adds a notification and returns true, or returns false if the queue of its device is full.
func (q *hostQueue) add(n unread) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drops {
		return true
	}
	if n.device != otherProcess {
		if q.from[n.device] == queued {
			return false
		}
		q.from[n.device]++
	}
	q.unread = append(q.unread, n)
	return true
}

// read reads unread notifications, up to the number that can be kept.
func (q *hostQueue) read() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.readLocked()
}

func (q *hostQueue) readLocked() {
	some := min(len(q.unread), keptMost-len(q.kept))
	for _, n := range q.unread[:some] {
		if n.device != otherProcess {
			q.from[n.device]--
		}
		q.kept = append(q.kept, n.envelope)
	}
	q.unread = slices.Delete(q.unread, 0, some)
}

// left returns the number of notifications that were read and not taken.
func (q *hostQueue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.kept)
}

// take takes the first count notifications that match and returns the first of them, or takes none if there
// are fewer.
func (q *hostQueue) take(m envelope, count uint64) (first envelope, all bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.readLocked()
	found := uint64(0)
	for _, n := range q.kept {
		if n.matches(m) {
			found++
		}
	}
	if found < count {
		return none, false
	}
	left := count
	q.kept = slices.DeleteFunc(q.kept, func(n envelope) bool {
		if left == 0 || !n.matches(m) {
			return false
		}
		if left == count {
			first = n
		}
		left--
		return true
	})
	return first, true
}

// hostReply receives the bytes that a rank on a CPU device gets from another process.
type hostReply struct {
	lock sync.Mutex
	to   []byte // nil: nothing is expected
	came bool
}

// expect sets the memory that receives the bytes; nil discards them.
func (r *hostReply) expect(to []byte) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.to, r.came = to, false
}

func (r *hostReply) take(bytes []byte) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if len(bytes) == len(r.to) {
		copy(r.to, bytes)
		r.came = true
	}
}

func (r *hostReply) isThere() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.came
}

// storePacket stores each 4 bytes together with a number, in twice as many bytes.
func storePacket(to, from []byte, number uint32) {
	words := streams.View[uint64](to)
	for i := range words {
		atomic.StoreUint64(&words[i], uint64(number)<<32|uint64(binary.NativeEndian.Uint32(from[4*i:])))
	}
}

// alignOf is the alignment of a packet, in bytes.
func alignOf(bytes []byte) int64 {
	if len(bytes) > 4 {
		return 16
	}
	return 8
}

func isAligned(at []byte, align int64) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(at)))%uintptr(align) == 0
}

// given is the values that a rank gives to a collective.
type given struct {
	number atomic.Uint64 // of the collective, from 1
	call   rankCall
	values []byte
}

// arrivals counts arrivals of other processes at a barrier, for odd and even barriers separately: a process may arrive
// at the next barrier before another has arrived at this one, but not at the one after that.
type arrivals [2]atomic.Uint64

func (a *arrivals) begin() {
	for i := range a {
		a[i].Store(0)
	}
}

// add counts an arrival at the n-th barrier, from 1.
func (a *arrivals) add(n uint64) { a[n%2].Add(1) }

// haveCome reports whether all other processes, of which there are others, have arrived at the n-th barrier.
func (a *arrivals) haveCome(n uint64, others int) bool {
	return a[n%2].Load() >= (n+1)/2*uint64(others)
}
