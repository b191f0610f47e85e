package ranks

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/halox/halox/streams"
)

// Rank is a rank of a program on a host device: the twin of class Rank of ranks.cuh, function by function. Only its
// own goroutine calls it.
//
// After a wait in vain, or another failure of any rank, all functions return at once, and those that return bool
// return false.
type Rank struct {
	state    *hostState
	device   int
	local    int // index among the ranks of its device
	consumed [Tags]uint64
	barriers [2]uint64 // made
	windows  [2]uint64 // that exist, a bit each
	timer    time.Time
}

// Window is memory of each rank of a communicator, which the others may write to and read.
type Window struct {
	slot int // below 0: none
	comm Comm
}

// AnyWindow matches every window, and no window.
var AnyWindow = Window{Any, All}

// Exists reports whether there is such a window.
func (w Window) Exists() bool { return w.slot >= 0 }

// Rows is the size of a box: rows of so many bytes, in planes.
type Rows struct{ Bytes, Rows, Planes int64 }

// Strides says how far apart the rows and the planes of a box begin, in bytes.
type Strides struct{ Row, Plane int64 }

// Size returns how many ranks a communicator has.
func (r *Rank) Size(c Comm) int {
	if c == Device {
		return r.state.ranks
	}
	return len(r.state.counts)
}

// Index returns the index of the rank in a communicator.
func (r *Rank) Index(c Comm) int {
	if c == Device {
		return r.local
	}
	return r.first() + r.local
}

// Device returns the index of the rank's device in the world.
func (r *Rank) Device() int { return r.device }

// first is the index in the world of the first rank of the device.
func (r *Rank) first() int { return r.device * r.state.ranks }

// Failed reports whether the run has failed.
func (r *Rank) Failed() bool { return r.state.over.Load() }

// Fail ends the run with a code of the program, as a wait in vain does: Run returns a CodeError with the rank, the code,
// the detail, and what Program.Errors has of the code. The caller goes on, and all functions return at once.
func (r *Rank) Fail(code, detail int64) {
	r.fail(failure{why: byProgram, expected: code, detail: detail, err: r.state.codes[code]})
}

// Ended reports whether the run has ended, by a failure anywhere or by the host. Of a kernel's functions, ended gives all
// threads of a group the same answer, which failed does not.
func (r *Rank) Ended() bool { return r.Failed() }

// Data returns the data that Run got for the device of the rank, which all its ranks share. T is the type that Run
// was called with.
func Data[T any](r *Rank) *T { return r.state.data[r.device].(*T) }

// Barrier returns once all ranks of the communicator have called it. What they stored before, also by Put, is then
// seen by all.
func (r *Rank) Barrier(c Comm) bool {
	if r.Failed() {
		return false
	}
	r.barriers[c]++
	count := &r.state.arrivals[len(r.state.devices)]
	if c == Device {
		count = &r.state.arrivals[r.device]
	}
	all := r.barriers[c] * uint64(r.Size(c))
	count.Add(1)
	if !r.await(func() bool { return count.Load() >= all }) {
		r.fail(failure{why: noBarrier, expected: int64(c)})
		return false
	}
	return true
}

// CreateWindow makes a window of the memory that each rank of the communicator gives, which may be of any size, also
// 0, and overlap those of other ranks. All ranks of the communicator call it. The window does not exist where
// the communicator has MaxWindows already.
func (r *Rank) CreateWindow(c Comm, memory []byte) Window {
	place := 0
	for r.windows[c]>>place&1 == 1 {
		place++
	}
	if place >= MaxWindows || r.Failed() {
		return Window{-1, c}
	}
	r.windows[c] |= 1 << place
	w := Window{int(c)*MaxWindows + place, c}
	r.state.windows[w.slot][r.Index(All)] = memory
	r.Barrier(c)
	return w
}

// FreeWindow ends a window. All ranks of the communicator call it; nobody uses the window any more.
func (r *Rank) FreeWindow(w Window) {
	r.Barrier(w.comm)
	if w.Exists() {
		r.windows[w.comm] &^= 1 << (w.slot % MaxWindows)
	}
}

// Memory returns a rank's memory of a window.
func (r *Rank) Memory(w Window, rank int) []byte {
	if w.comm == Device {
		rank += r.first()
	}
	return r.state.windows[w.slot][rank]
}

// Put puts bytes at an offset into the window of a rank of its communicator. The source may be changed after a Flush;
// nobody is told.
func (r *Rank) Put(w Window, to int, offset int64, from []byte) {
	if r.valid(w, to, offset, int64(len(from))) {
		copy(r.Memory(w, to)[offset:], from)
	}
}

// PutNotify is Put, and then Notify. One notification tells of all that was put to that rank before.
func (r *Rank) PutNotify(w Window, to int, offset int64, from []byte, tag int) {
	r.Put(w, to, offset, from)
	r.notify(to, w.comm, tag, w.slot)
}

// Notify adds to the notifications that a rank of the communicator has of a tag. Who waits for it sees all that was
// put to that rank before.
func (r *Rank) Notify(to int, c Comm, tag int) { r.notify(to, c, tag, Any) }

func (r *Rank) notify(to int, c Comm, tag, slot int) {
	if r.Failed() || !r.validRank(c, to) || !r.validTag(tag) {
		return
	}
	if c == Device {
		to += r.first()
	}
	if r.state.queues != nil {
		r.state.queues[to].add(notice{slot, r.Index(All), tag})
		return
	}
	r.state.counts[to][tag].Add(1)
}

// PutBox is Put of a box, whose rows and planes are as far apart at the target and in the source as the strides say.
func (r *Rank) PutBox(w Window, to int, offset int64, there Strides, size Rows, from []byte, here Strides) {
	if size.Bytes <= 0 || size.Rows <= 0 || size.Planes <= 0 {
		return
	}
	span := func(s Strides) int64 { return (size.Rows-1)*s.Row + (size.Planes-1)*s.Plane + size.Bytes }
	if !r.valid(w, to, offset, span(there)) {
		return
	}
	if span(here) > int64(len(from)) {
		r.fail(failure{why: badSource, detail: span(here)})
		return
	}
	target := r.Memory(w, to)[offset:]
	for z := range size.Planes {
		for y := range size.Rows {
			row := from[z*here.Plane+y*here.Row:]
			copy(target[z*there.Plane+y*there.Row:], row[:size.Bytes])
		}
	}
}

// Get gets bytes from an offset of the window of a rank. They are there after a Flush.
func (r *Rank) Get(w Window, rank int, offset int64, to []byte) {
	if r.valid(w, rank, offset, int64(len(to))) {
		copy(to, r.Memory(w, rank)[offset:])
	}
}

// GetNotify is Get, and then a notification of the rank whose window was read: it may write there again.
func (r *Rank) GetNotify(w Window, rank int, offset int64, to []byte, tag int) {
	r.Get(w, rank, offset, to)
	r.Notify(rank, w.comm, tag)
}

// Flush returns once the sources of all puts may be changed, and what was got is there.
func (r *Rank) Flush(Window) {}

// TestNotifications takes count notifications of a tag and returns true, or takes none and returns false.
func (r *Rank) TestNotifications(tag int, count uint64) bool {
	return !r.Failed() && r.validTag(tag) && r.take(tag, count)
}

// WaitNotifications waits until it can take count notifications of a tag.
func (r *Rank) WaitNotifications(tag int, count uint64) bool {
	if r.Failed() || !r.validTag(tag) {
		return false
	}
	if !r.await(func() bool { return r.take(tag, count) }) {
		r.fail(failure{why: noNotifications, expected: int64(count), came: int64(r.came(tag)), detail: int64(tag)})
		return false
	}
	return true
}

// TestMatching takes count notifications that match and returns true, those that came first, or takes none and returns
// false. The run has Options.Queues. Window, source, an index of all ranks, and tag may be AnyWindow and Any.
func (r *Rank) TestMatching(w Window, source, tag int, count uint64) bool {
	return !r.Failed() && r.match(notice{w.slot, source, tag}, count)
}

// WaitMatching waits until it can take count notifications that match.
func (r *Rank) WaitMatching(w Window, source, tag int, count uint64) bool {
	if r.Failed() {
		return false
	}
	if !r.await(func() bool { return r.match(notice{w.slot, source, tag}, count) }) {
		others := r.state.queues[r.Index(All)].length()
		r.fail(failure{why: noMatch, expected: int64(count), came: int64(others), detail: int64(source)<<32 | int64(uint32(tag))})
		return false
	}
	return true
}

func (r *Rank) match(m notice, count uint64) bool {
	return r.state.queues[r.Index(All)].take(m, count)
}

// WaitAny waits for one notification of any of some tags, takes it, and returns its tag, or -1 in vain.
func (r *Rank) WaitAny(firstTag, tags int) int {
	found := -1
	if r.Failed() || !r.validTag(firstTag) || !r.validTag(firstTag+tags-1) {
		return found
	}
	came := r.await(func() bool {
		for tag := firstTag; tag < firstTag+tags; tag++ {
			if r.take(tag, 1) {
				found = tag
				return true
			}
		}
		return false
	})
	if !came {
		r.fail(failure{why: noNotifications, expected: 1, detail: int64(firstTag)})
	}
	return found
}

// PutPacket puts bytes so that the target sees each 4 of them together with a number, which tells it that they have
// come. They take twice as many bytes at the target, from a multiple of 16 on; there are a multiple of 4. The number
// differs from all that were put there before.
func (r *Rank) PutPacket(w Window, to int, offset int64, from []byte, number uint32) {
	if !r.valid(w, to, offset, 2*int64(len(from))) {
		return
	}
	words := streams.View[uint64](r.Memory(w, to)[offset:][:2*len(from)])
	for i, word := range streams.View[uint32](from) {
		atomic.StoreUint64(&words[i], uint64(number)<<32|uint64(word))
	}
}

// WaitPacket waits for bytes that were put as a packet with a number at the beginning of some memory, and copies them.
func (r *Rank) WaitPacket(at, to []byte, number uint32) bool {
	if r.Failed() {
		return false
	}
	words := streams.View[uint64](at[:2*len(to)])
	for i := range words {
		var got uint64
		came := r.await(func() bool {
			got = atomic.LoadUint64(&words[i])
			return uint32(got>>32) == number
		})
		if !came {
			r.fail(failure{why: noPacket, expected: int64(number), came: int64(got >> 32), detail: int64(4 * i)})
			return false
		}
		streams.View[uint32](to)[i] = uint32(got)
	}
	return true
}

// StartTimer and StopTimer are called by all ranks of a device, and wait for all of them. World.Timings has the
// time from each start to the next stop.
func (r *Rank) StartTimer() {
	r.Barrier(Device)
	r.timer = time.Now()
}

// StopTimer ends what StartTimer began.
func (r *Rank) StopTimer() {
	r.Barrier(Device)
	if took := &r.state.took[r.device]; r.local == 0 && len(*took) < maxTimings {
		*took = append(*took, time.Since(r.timer).Nanoseconds())
	}
}

// Log writes a line to the log of the run: the items one after the other, as fmt.Print formats each.
func (r *Rank) Log(items ...any) {
	var line strings.Builder
	for _, item := range items {
		fmt.Fprint(&line, item)
	}
	r.state.log.write(r.Index(All), r.state.devices[r.device], line.String())
}

// count is that of the notifications of a tag.
func (r *Rank) count(tag int) *atomic.Uint64 { return &r.state.counts[r.first()+r.local][tag] }

// came returns how many notifications of a tag have come and were not taken.
func (r *Rank) came(tag int) uint64 { return r.count(tag).Load() - r.consumed[tag] }

func (r *Rank) take(tag int, count uint64) bool {
	if r.state.queues != nil {
		return r.match(notice{Any, Any, tag}, count)
	}
	if int64(r.came(tag)-count) < 0 {
		return false
	}
	r.consumed[tag] += count
	return true
}

// await polls until done returns true. It returns false after the limit, and where the run ends.
func (r *Rank) await(done func() bool) bool {
	for p := (pause{}); ; p.wait() {
		if done() {
			return true
		}
		if r.Failed() || p.waited() > r.state.limit {
			return false
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

func (r *Rank) validTag(tag int) bool {
	return r.check(tag >= 0 && tag < Tags, failure{why: badTag, expected: Tags, came: int64(tag)})
}

func (r *Rank) validRank(c Comm, rank int) bool {
	return r.check(rank >= 0 && rank < r.Size(c), failure{why: badRank, expected: int64(r.Size(c)), came: int64(rank)})
}

func (r *Rank) valid(w Window, rank int, offset, bytes int64) bool {
	if r.Failed() || !r.check(w.Exists() && r.windows[w.comm]>>(w.slot%MaxWindows)&1 == 1, failure{why: badWindow, came: int64(w.slot)}) || !r.validRank(w.comm, rank) {
		return false
	}
	all := int64(len(r.Memory(w, rank)))
	return r.check(offset >= 0 && bytes >= 0 && offset <= all-bytes, failure{why: badRange, expected: all, came: offset, detail: bytes})
}
