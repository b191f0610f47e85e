package ranks

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/halox/halox/internal/nap"
	"github.com/halox/halox/streams"
)

// hostState is what the ranks of a run on host devices share. The runs of a world have the same, one after the other, so
// that a run allocates nothing.
type hostState struct {
	hostShape
	data     []any                 // by device: a pointer to the caller's
	counts   [][Tags]atomic.Uint64 // of notifications, by rank of the world
	arrivals []atomic.Uint64       // at barriers of each device, and of all of this process
	others   arrivals              // of other processes, at barriers of all
	replies  []hostReply           // by rank of this process
	queues   []hostQueue           // of notifications that keep their source; nil: they are counted
	inboxes  [2][][maxLevels]inbox // of collectives, by communicator and rank of the world
	channels []*hostChannel
	windows  [2 * MaxWindows][][]byte
	sizes    [2 * MaxWindows][]int64 // of windows of other processes
	took     [][]int64               // by device
	log      *logger
	codes    map[int64]error // of the program
	over     atomic.Bool
	failing  sync.Mutex
	failed   error
}

// hostShape is what a world has of devices and processes, see World.
type hostShape struct {
	devices []*streams.Device
	before  int
	owners  []int
	remote  *remote
	ranks   int // of each device
	limit   time.Duration
}

// size is how many ranks there are.
func (h hostShape) size() int { return h.ranks * len(h.owners) }

// away returns the process of a rank of the world, -1 if it is one of this process.
func (h hostShape) away(rank int) int {
	if h.remote == nil || h.owners[rank/h.ranks] == h.remote.processes.Rank {
		return -1
	}
	return h.owners[rank/h.ranks]
}

// newHostState makes that of a world, with queues or without.
func newHostState(shape hostShape, queues bool) *hostState {
	n := len(shape.devices)
	size := shape.size()
	h := &hostState{hostShape: shape}
	h.data, h.took = make([]any, n), make([][]int64, n)
	h.counts, h.arrivals = make([][Tags]atomic.Uint64, size), make([]atomic.Uint64, n+1)
	h.replies = make([]hostReply, n*h.ranks)
	for c := range h.inboxes {
		h.inboxes[c] = make([][maxLevels]inbox, size)
	}
	if queues {
		h.queues = make([]hostQueue, size)
	}
	for slot := range h.windows {
		h.windows[slot], h.sizes[slot] = make([][]byte, size), make([]int64, size)
	}
	return h
}

// begin gives all what it has before the first rank of a run: counts that begin with first, windows that the host made,
// by slot, and channels.
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
	for c := range h.inboxes {
		for rank := range h.inboxes[c] {
			for level := range h.inboxes[c][rank] {
				h.inboxes[c][rank][level].full.Store(false)
			}
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

// fail ends the run where a rank has failed; the first failure is the error.
func (h *hostState) fail(f failure) { h.end(f.describe(h.devices[f.rank/h.ranks-h.before], h.limit)) }

func (h *hostState) end(err error) {
	h.failing.Lock()
	defer h.failing.Unlock()
	if h.over.Load() {
		return
	}
	h.failed = err
	h.over.Store(true)
	if h.remote != nil && err != errElsewhere {
		_ = h.remote.postAll(letter{what: letterEnded}) // a failure of the mail is one of all processes
	}
}

// notify gives a rank of this process a notification of a device, and returns whether there was room for it.
func (h *hostState) notify(to, device int, n notice) bool {
	if h.queues != nil {
		return h.queues[to].add(unreadNotice{n, device})
	}
	h.counts[to][n.tag].Add(1)
	return true
}

// pause paces a loop that waits: it lets other goroutines run, and then sleeps longer and longer.
type pause struct {
	begun time.Time
	turns int
}

// wait is for a loop beside many others.
func (p *pause) wait() { p.turn(time.Sleep) }

// nap is for a loop beside few others: it keeps its thread while it sleeps. By Go's timer each sleep is a millisecond where a process does
// nothing but wait for GPUs.
func (p *pause) nap() { p.turn(nap.Sleep) }

// serve is for a loop that serves others: it naps where there are cores enough. Else loops that wake so often take the cores from those whom
// they serve.
func (p *pause) serve() {
	if runtime.GOMAXPROCS(0) > fewCores {
		p.nap()
	} else {
		p.wait()
	}
}

const fewCores = 4

func (p *pause) turn(sleep func(time.Duration)) {
	const yields, longest = 50, 200
	if p.turns == 0 {
		p.begun = time.Now()
	}
	p.turns++
	if p.turns <= yields {
		runtime.Gosched()
		return
	}
	sleep(time.Duration(min(p.turns-yields, longest)) * time.Microsecond)
}

// waited returns how long the loop has waited.
func (p *pause) waited() time.Duration {
	if p.turns == 0 {
		return 0
	}
	return time.Since(p.begun)
}
