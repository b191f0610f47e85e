package ranks

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/halox/halox/streams"
)

// hostState is what the ranks of a run on host devices share.
type hostState struct {
	devices  []*streams.Device
	ranks    int // of each device
	limit    time.Duration
	data     []any                 // by device: a pointer to the caller's
	counts   [][Tags]atomic.Uint64 // of notifications, by rank of the world
	arrivals []atomic.Uint64       // at barriers of each device, and of all
	queues   []hostQueue           // of notifications that keep their source; nil: they are counted
	inboxes  [2][][maxLevels]inbox // of collectives, by communicator and rank of the world
	channels []*hostChannel
	windows  [2 * MaxWindows][][]byte
	took     [][]int64 // by device
	log      *logger
	codes    map[int64]error // of the program
	over     atomic.Bool
	failing  sync.Mutex
	failed   error
}

// newHostState has counts of notifications that begin with first.
func newHostState(devices []*streams.Device, ranks int, limit time.Duration, queues bool, first uint64) *hostState {
	size := ranks * len(devices)
	h := &hostState{devices: devices, ranks: ranks, limit: limit, took: make([][]int64, len(devices))}
	h.counts, h.arrivals = make([][Tags]atomic.Uint64, size), make([]atomic.Uint64, len(devices)+1)
	for rank := range h.counts {
		for tag := range h.counts[rank] {
			h.counts[rank][tag].Store(first)
		}
	}
	for c := range h.inboxes {
		h.inboxes[c] = make([][maxLevels]inbox, size)
	}
	if queues {
		h.queues = make([]hostQueue, size)
	}
	for slot := range h.windows {
		h.windows[slot] = make([][]byte, size)
	}
	return h
}

// fail ends the run where a rank has failed; the first failure is the error.
func (h *hostState) fail(f failure) { h.end(f.describe(h.devices[f.rank/h.ranks], h.limit)) }

func (h *hostState) end(err error) {
	h.failing.Lock()
	defer h.failing.Unlock()
	if !h.over.Load() {
		h.failed = err
	}
	h.over.Store(true)
}

// pause paces a loop that waits: it lets other goroutines run, and then sleeps longer and longer.
type pause struct {
	begun time.Time
	turns int
}

func (p *pause) wait() {
	const yields, longest = 50, 200
	if p.turns == 0 {
		p.begun = time.Now()
	}
	p.turns++
	if p.turns <= yields {
		runtime.Gosched()
		return
	}
	time.Sleep(time.Duration(min(p.turns-yields, longest)) * time.Microsecond)
}

// waited returns how long the loop has waited.
func (p *pause) waited() time.Duration {
	if p.turns == 0 {
		return 0
	}
	return time.Since(p.begun)
}
