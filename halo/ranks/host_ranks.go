package ranks

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

var errGoroutine = errors.New("its function ended its goroutine")

// hostRanks are the ranks of a world on host devices. Each has a goroutine, for all runs.
type hostRanks struct {
	state   *hostState
	all     [][]Rank          // by device
	begins  [][]chan struct{} // tell the goroutine of each that a run begins
	running []sync.WaitGroup  // by device
	closing sync.Mutex        // of begins, which are nil once they are closed
}

// newHostRanks makes those that share a state and do the same.
func newHostRanks(state *hostState, does func(*Rank)) *hostRanks {
	devices := len(state.devices)
	h := &hostRanks{state: state, all: make([][]Rank, devices), begins: make([][]chan struct{}, devices), running: make([]sync.WaitGroup, devices)}
	for d := range h.all {
		h.all[d], h.begins[d] = make([]Rank, state.ranks), make([]chan struct{}, state.ranks)
		for i := range h.all[d] {
			begins := make(chan struct{}, 1)
			h.begins[d][i] = begins
			go h.serve(begins, d, i, does)
		}
	}
	return h
}

// serve makes all runs of a rank. Where the function of the program ends the goroutine, as testing.T.Fatal does, another goes on.
func (h *hostRanks) serve(begins chan struct{}, device, i int, does func(*Rank)) {
	done := false
	defer func() {
		if !done {
			go h.serve(begins, device, i, does)
		}
	}()
	for range begins {
		h.run(device, i, does)
	}
	done = true
}

// Close ends the goroutines of all ranks, once they are done.
func (h *hostRanks) Close() error {
	h.closing.Lock()
	defer h.closing.Unlock()
	for _, all := range h.begins {
		for _, begins := range all {
			close(begins)
		}
	}
	h.begins = nil
	return nil
}

// begin gives all ranks what they have before a run: counts that begin with first, and windows that the host made.
func (h *hostRanks) begin(first uint64, windows [2]uint64) {
	for d := range h.all {
		for i := range h.all[d] {
			r := &h.all[d][i]
			*r = Rank{state: h.state, device: d, local: i, windows: windows, made: windows}
			for tag := range r.consumed {
				r.consumed[tag] = first
			}
		}
	}
}

// runAll runs the ranks of a device, and returns once all have ended. Where the world is closed, as a stream of a device that has
// failed may find it, it runs none.
func (h *hostRanks) runAll(device int) {
	h.beginAll(device)
	h.running[device].Wait()
}

func (h *hostRanks) beginAll(device int) {
	h.closing.Lock()
	defer h.closing.Unlock()
	if h.begins == nil {
		return
	}
	h.running[device].Add(len(h.all[device]))
	for _, begins := range h.begins[device] {
		begins <- struct{}{}
	}
}

// run runs a rank.
func (h *hostRanks) run(device, i int, does func(*Rank)) {
	defer h.running[device].Done()
	r, returned := &h.all[device][i], false
	defer func() {
		if p := recover(); p != nil {
			r.fail(failure{err: fmt.Errorf("its function panicked: %v\n%s", p, debug.Stack())})
		} else if !returned {
			r.fail(failure{err: errGoroutine})
		}
	}()
	if r.Barrier(All) {
		does(r)
		if q := h.state.queues; q != nil {
			q[r.Index(All)].drop()
		}
		r.Barrier(All)
	}
	returned = true
}
