package ranks

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Rank is a rank of a program on a CPU device: the counterpart of class Rank of ranks.cuh, function by
// function. Only its own goroutine calls it. After a wait has timed out, or any rank has failed, all
// functions return immediately, and those that return a bool return false.
type Rank struct {
	state       *hostState
	device      int
	local       int // index among the ranks of its device
	consumed    [Tags]uint64
	barriers    [2]uint64 // number of barriers, including those of collectives
	collectives [2]uint64 // number of calls
	windows     [2]uint64 // existing windows, one bit each
	made        [2]uint64 // made by World.NewWindow
	timer       time.Time
}

// Window is memory of each rank of a communicator that the other ranks may write and read. CreateWindow and
// NewWindow make it; the zero value is the first window of All.
type Window struct {
	slot int // or noSlot, or anySlot
	comm Comm
}

// AnyWindow matches notifications of every window, and notifications without a window.
var AnyWindow = Window{anySlot, All}

// Exists reports whether the window exists.
func (w Window) Exists() bool { return w.slot >= 0 }

// Size returns the number of ranks of a communicator.
func (r *Rank) Size(c Comm) int {
	if c == Device {
		return r.state.ranks
	}
	return r.state.Size()
}

// Index returns the index of the rank in a communicator.
func (r *Rank) Index(c Comm) int {
	if c == Device {
		return r.local
	}
	return r.first() + r.local
}

// Device returns which of World.Devices the rank is on.
func (r *Rank) Device() int { return r.device }

// first is the index in the world of the first rank of the device.
func (r *Rank) first() int { return (r.state.before + r.device) * r.state.ranks }

// Failed reports whether the run has failed.
func (r *Rank) Failed() bool { return r.state.over.Load() }

// Fail ends the run with a code of the program, as a timed-out wait does: Run returns a CodeError with the
// rank, the code, the detail, and the entry of the code in Program.Errors. The caller continues, and all
// functions return immediately.
func (r *Rank) Fail(code, detail int64) {
	r.fail(failure{why: byProgram, expected: code, detail: detail, err: r.state.codes[code]})
}

// Ended reports whether the run has ended, by a failure anywhere or by the host. In kernels, ended returns
// the same value to all threads of a group; failed does not.
func (r *Rank) Ended() bool { return r.Failed() }

// Barrier returns once all ranks of the communicator have called it. Then all see what was stored before,
// also by Put.
func (r *Rank) Barrier(c Comm) bool {
	if r.Failed() || !r.validComm(c) {
		return false
	}
	came := r.meet(c)
	if !came {
		r.fail(failure{why: noBarrier, expected: int64(c)})
	}
	return came
}

// meet waits until all ranks of a communicator have arrived, in barriers and collectives.
func (r *Rank) meet(c Comm) bool {
	r.barriers[c]++
	h := r.state
	count, here := &h.arrivals[len(h.devices)], h.ranks*len(h.devices)
	if c == Device {
		count, here = &h.arrivals[r.device], h.ranks
	}
	all := r.barriers[c] * uint64(here)
	last := count.Add(1) == all
	came := r.awaitBarrier(func() bool { return count.Load() >= all })
	if came && c == All && h.remote != nil {
		came = r.meetOthers(last)
	}
	return came
}

// meetOthers waits until the ranks of all other processes have arrived at a barrier, after all ranks of this
// process have. The last of these notifies the other processes, once its stores there are complete.
func (r *Rank) meetOthers(last bool) bool {
	h := r.state
	if last {
		if !r.awaitBarrier(h.remote.allSettled) {
			return false
		}
		if err := h.remote.postAll(message{what: msgArrive, n: int64(r.barriers[All])}); err != nil {
			h.end(err)
		}
	}
	return r.awaitBarrier(func() bool { return h.others.haveCome(r.barriers[All], len(h.remote.sent)-1) })
}

// Memory returns a rank's memory of a window, nil if it belongs to another process. If it does not exist, the
// run ends.
func (r *Rank) Memory(w Window, rank int) []byte {
	if !r.validWindow(w) || !r.validRank(w.comm, rank) {
		return nil
	}
	return r.memoryOf(w, rank)
}

// memoryOf is Memory of a valid window and rank.
func (r *Rank) memoryOf(w Window, rank int) []byte {
	return r.state.windows[w.slot][r.inWorld(w.comm, rank)]
}

// inWorld returns the index in the world of a rank of a communicator.
func (r *Rank) inWorld(c Comm, rank int) int {
	if c == Device {
		rank += r.first()
	}
	return rank
}

// await polls until done returns true. It returns false after the limit, or when the run ends.
func (r *Rank) await(done func() bool) bool { return r.awaitFor(r.state.limit, done) }

// awaitBarrier is await with up to a second more, so that the error names a rank that waits for something
// else.
func (r *Rank) awaitBarrier(done func() bool) bool {
	limit := r.state.limit
	return r.awaitFor(limit+min(limit/8, time.Second, math.MaxInt64-limit), done)
}

func (r *Rank) awaitFor(limit time.Duration, done func() bool) bool {
	for wait := manyLoops.Begin(); ; wait.Pause() {
		if done() {
			return true
		}
		if r.Failed() || wait.Waited() > limit {
			return false
		}
		if r.state.queues != nil { // others may wait for a slot in its queue
			r.state.queues[r.Index(All)].read()
		}
	}
}

func (r *Rank) fail(f failure) {
	f.rank = r.Index(All)
	r.state.fail(f)
}

func (r *Rank) check(right bool, f failure) bool {
	if !right {
		r.fail(f)
	}
	return right
}

// validCount rejects a count that is negative as a signed number, which would count as arrived immediately,
// and with queues a count above the number that a rank keeps.
func (r *Rank) validCount(count uint64) bool {
	if r.state.queues != nil && count > keptMost {
		return r.check(false, failure{why: badCount, expected: keptMost, came: int64(count)})
	}
	return r.check(int64(count) >= 0, failure{why: badCount, came: int64(count)})
}

// bytesOf returns the length of a rank's window.
func (r *Rank) bytesOf(w Window, rank int) int64 {
	if to := r.inWorld(w.comm, rank); r.state.processOf(to) >= 0 {
		return r.state.sizes[w.slot][to]
	}
	return int64(len(r.memoryOf(w, rank)))
}

func (r *Rank) validTag(tag int) bool {
	return r.check(tag >= 0 && tag < Tags, failure{why: badTag, expected: Tags, came: int64(tag)})
}

func (r *Rank) validComm(c Comm) bool {
	return r.check(c == All || c == Device, failure{why: badComm, came: int64(c)})
}

func (r *Rank) validRank(c Comm, rank int) bool {
	return r.validComm(c) &&
		r.check(rank >= 0 && rank < r.Size(c), failure{why: badRank, expected: int64(r.Size(c)), came: int64(rank)})
}

// validWindow reports whether a window has been made and not freed.
func (r *Rank) validWindow(w Window) bool {
	open := w.slot >= 0 && w.slot < len(r.windows)*MaxWindows && int(w.comm) == w.slot/MaxWindows &&
		r.windows[w.comm]>>(w.slot%MaxWindows)&1 == 1
	return r.check(open, failure{why: badWindow, came: int64(w.slot)})
}

// place is failure.where of the memory of a rank in a window.
func (r *Rank) place(w Window, rank int) int64 {
	return int64(r.inWorld(w.comm, rank))<<32 | int64(w.slot)
}

func (r *Rank) valid(w Window, rank int, offset, bytes int64) bool {
	if r.Failed() || !r.validWindow(w) || !r.validRank(w.comm, rank) {
		return false
	}
	all := r.bytesOf(w, rank)
	return r.check(
		offset >= 0 && bytes >= 0 && offset <= all-bytes,
		failure{why: badRange, expected: all, came: offset, detail: bytes, where: r.place(w, rank)},
	)
}

// mostBody is the maximum number of bytes after a message: a multiple of 16.
const mostBody = (mpi.MaxRecord - messageBytes) / 16 * 16

// post sends a message and its bytes to another process, in several pieces if needed. It waits while the
// queue is full.
func (r *Rank) post(process int, msg message, bytes []byte) {
	m := r.state.remote.queue
	for first := true; first || len(bytes) > 0; first = false {
		if !r.await(func() bool { return !m.IsFull(process) }) {
			r.fail(failure{why: noProxy, expected: commands, came: msg.to / int64(r.state.ranks)})
			return
		}
		piece := bytes[:min(len(bytes), mostBody)]
		if err := r.state.remote.post(process, msg, piece); err != nil {
			r.state.end(err)
			return
		}
		msg.at += msg.what.space(int64(len(piece)))
		bytes = bytes[len(piece):]
	}
	r.flushMessages()
}

// sendAll sends a message to all other processes.
func (r *Rank) sendAll(msg message) {
	if err := r.state.remote.postAll(msg); err != nil {
		r.state.end(err)
	}
	r.flushMessages()
}

func (r *Rank) flushMessages() {
	if err := r.state.remote.queue.Flush(); err != nil {
		r.state.end(err)
	}
}

// fetch gets bytes of a window of another process, piece by piece.
func (r *Rank) fetch(process int, msg message, to []byte) {
	reply := &r.state.replies[r.device*r.state.ranks+r.local]
	msg.from = int64(r.Index(All))
	for len(to) > 0 {
		piece := to[:min(len(to), mostBody)]
		msg.n = int64(len(piece))
		reply.expect(piece)
		r.post(process, msg, nil)
		came := r.await(reply.isThere)
		reply.expect(nil)
		if !came {
			r.fail(failure{why: noProxy, expected: commands, came: msg.to / int64(r.state.ranks)})
			return
		}
		msg.at += msg.n
		to = to[len(piece):]
	}
}

var errGoroutine = errors.New("its function ended its goroutine")

// hostRanks are the ranks of a world on CPU devices. Each has a goroutine, for all runs.
type hostRanks struct {
	state   *hostState
	all     [][]Rank          // by device
	begins  [][]chan struct{} // start a run of each goroutine
	running []sync.WaitGroup  // by device
	closing sync.Mutex        // guards begins, which are nil after Close
}

// newHostRanks returns ranks that share a state and all run function does.
func newHostRanks(state *hostState, does func(*Rank)) *hostRanks {
	devices := len(state.devices)
	h := &hostRanks{
		state: state, all: make([][]Rank, devices), begins: make([][]chan struct{}, devices),
		running: make([]sync.WaitGroup, devices),
	}
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

// serve executes all runs of a rank. If the function of the program ends the goroutine, as testing.T.Fatal
// does, another goroutine continues.
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

// Close ends the goroutines of all ranks, after their runs.
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

// begin resets all ranks for a run: counts begin with first, and windows has one bit per window made by the
// host.
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

// runAll runs the ranks of a device, and returns once all have ended. It runs none if the world is closed,
// which the stream of a failed device may encounter.
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

// run runs a rank once.
func (h *hostRanks) run(device, i int, does func(*Rank)) {
	defer h.running[device].Done()
	r, returned := &h.all[device][i], false
	defer func() {
		if p := recover(); p != nil {
			r.fail(failure{err: fmt.Errorf("its function panicked: %s", streams.Panicked(p))})
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
