package ranks

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/streams"
)

// Rows is the size of a box: rows of Bytes bytes, in planes.
type Rows struct {
	Bytes, Rows, Planes int64 // bytes per row, rows per plane, planes
}

// Strides are the distances between the starts of the rows and of the planes of a box, in bytes.
type Strides struct {
	Row, Plane int64 // bytes; may be negative
}

// Data returns the data passed to Run for the device of the rank, which all its ranks share. T is the type
// that Run was called with.
func Data[T any](r *Rank) *T { return r.state.data[r.device].(*T) }

// CreateWindow makes a window of the memory that each rank of the communicator passes, of any size including
// 0, possibly overlapping that of other ranks. All ranks of the communicator call it. The window does not
// exist (see Exists) if the communicator already has MaxWindows windows, or the run has failed.
func (r *Rank) CreateWindow(c Comm, memory []byte) Window {
	if r.Failed() || !r.validComm(c) {
		return Window{noSlot, c}
	}
	place := 0
	for r.windows[c]>>place&1 == 1 {
		place++
	}
	if place >= MaxWindows {
		return Window{noSlot, c}
	}
	r.windows[c] |= 1 << place
	w := Window{int(c)*MaxWindows + place, c}
	r.state.windows[w.slot][r.Index(All)] = memory
	if r.state.remote != nil && c == All {
		r.sendAll(message{what: msgWindow, from: int64(r.Index(All)), slot: int64(w.slot), n: int64(len(memory))})
	}
	if !r.Barrier(c) {
		return Window{noSlot, c}
	}
	return w
}

// FreeWindow frees a window. All ranks of the communicator call it, for several windows in the same order; no
// rank may use the window afterwards. It has no effect on a window of World.NewWindow.
func (r *Rank) FreeWindow(w Window) {
	if r.Failed() || !r.validWindow(w) {
		return
	}
	r.Barrier(w.comm)
	if w.Exists() && r.made[w.comm]>>(w.slot%MaxWindows)&1 == 0 {
		r.windows[w.comm] &^= 1 << (w.slot % MaxWindows)
	}
}

// reach returns the range of bytes of a box that begins at an offset in memory of all bytes. A range that
// exceeds the memory may be shortened.
func (s Rows) reach(offset int64, by Strides, all int64) (low, high int64) {
	low, high = offset, offset+min(s.Bytes, all+1)
	for _, along := range []struct{ count, stride int64 }{{s.Rows, by.Row}, {s.Planes, by.Plane}} {
		distance, more := uint64(along.stride), uint64(along.count-1)
		if along.stride < 0 {
			distance = -distance
		}
		far := all + 1
		if distance == 0 || more <= uint64(all)/distance {
			far = int64(more * distance)
		}
		if along.stride < 0 {
			low -= far
		} else {
			high += far
		}
	}
	return low, high
}

// Put puts bytes at an offset into the window of a rank of its communicator. The source may be changed after a Flush.
// It sends no notification.
func (r *Rank) Put(w Window, to int, offset int64, from []byte) {
	if !r.valid(w, to, offset, int64(len(from))) {
		return
	}
	if process := r.state.processOf(r.inWorld(w.comm, to)); process >= 0 {
		r.post(process, message{what: msgPut, to: int64(to), slot: int64(w.slot), at: offset}, from)
		return
	}
	copy(r.Memory(w, to)[offset:], from)
}

// PutNotify is Put followed by Notify. One notification covers everything put to that rank before.
func (r *Rank) PutNotify(w Window, to int, offset int64, from []byte, tag int) {
	r.Put(w, to, offset, from)
	r.notify(to, w.comm, tag, w.slot)
}

// Notify sends a notification with a tag to a rank of the communicator. When that rank has taken it, it sees
// everything that this rank has put to it before.
func (r *Rank) Notify(to int, c Comm, tag int) { r.notify(to, c, tag, noSlot) }

func (r *Rank) notify(to int, c Comm, tag, slot int) {
	if r.Failed() || !r.validRank(c, to) || !r.validTag(tag) {
		return
	}
	to = r.inWorld(c, to)
	if process := r.state.processOf(to); process >= 0 {
		r.post(process, message{
			what: msgNotify, to: int64(to), from: int64(r.Index(All)), slot: int64(slot), at: int64(tag),
		}, nil)
		return
	}
	n := envelope{slot, r.Index(All), tag}
	if !r.await(func() bool { return r.state.notify(to, r.device, n) }) {
		r.fail(failure{why: queueFull, expected: queued, came: int64(to), detail: int64(tag)})
	}
}

// PutBox is Put of a box. The strides are the distances of its rows and planes at the target and in the source; in the
// source, which begins with the first row, they are not negative. A box of two dimensions has one plane. A box of no
// bytes, rows or planes puts nothing, at an offset up to the end of the window.
func (r *Rank) PutBox(w Window, to int, offset int64, there Strides, size Rows, from []byte, here Strides) {
	least, first := min(size.Bytes, size.Rows, size.Planes), size.Bytes
	if least <= 0 {
		first = 0
	}
	if !r.valid(w, to, offset, first) || !r.check(least >= 0, failure{why: badCount, came: least}) || least == 0 {
		return
	}
	all := r.bytesOf(w, to)
	if !r.check((there.Row != 0 || size.Rows == 1) && (there.Plane != 0 || size.Planes == 1), failure{why: badBox}) {
		return
	}
	if low, high := size.reach(offset, there, all); !r.check(
		low >= 0 && high <= all,
		failure{why: badRange, expected: all, came: low, detail: high - low, where: r.place(w, to)},
	) {
		return
	}
	all = int64(len(from))
	low, high := size.reach(0, here, all)
	if !r.check(low >= 0 && high <= all, failure{why: badSource, expected: all}) {
		return
	}
	for z := range size.Planes {
		for y := range size.Rows {
			r.Put(w, to, offset+z*there.Plane+y*there.Row, from[z*here.Plane+y*here.Row:][:size.Bytes])
		}
	}
}

// Get copies bytes from an offset of the window of a rank. They have arrived after a Flush. It sees stores
// that notifications and barriers have ordered before it.
func (r *Rank) Get(w Window, rank int, offset int64, to []byte) {
	if !r.valid(w, rank, offset, int64(len(to))) {
		return
	}
	if process := r.state.processOf(r.inWorld(w.comm, rank)); process >= 0 {
		r.fetch(process, message{what: msgGet, to: int64(rank), slot: int64(w.slot), at: offset}, to)
		return
	}
	copy(to, r.Memory(w, rank)[offset:])
}

// GetNotify is Get, and then notifies the rank whose window was read, so that it may write there again.
func (r *Rank) GetNotify(w Window, rank int, offset int64, to []byte, tag int) {
	r.Get(w, rank, offset, to)
	r.Notify(rank, w.comm, tag)
}

// Flush completes operations locally: after it, sources of puts may be changed, and data of gets has arrived.
// It does not wait for the targets.
func (r *Rank) Flush(Window) {}

// TestNotifications takes count notifications of a tag and returns true, or takes none and returns false.
func (r *Rank) TestNotifications(tag int, count uint64) bool {
	return !r.Failed() && r.validTag(tag) && r.validCount(count) && r.take(tag, count)
}

// WaitNotifications waits until it can take count notifications of a tag.
func (r *Rank) WaitNotifications(tag int, count uint64) bool {
	if r.Failed() || !r.validTag(tag) || !r.validCount(count) {
		return false
	}
	if r.state.queues != nil {
		return r.WaitMatching(AnyWindow, Any, tag, count)
	}
	if !r.await(func() bool { return r.take(tag, count) }) {
		r.fail(failure{why: noNotifications, expected: int64(count), came: int64(r.came(tag)), detail: int64(tag)})
		return false
	}
	return true
}

// TestMatching takes the first count notifications that match and returns true, or takes none and returns
// false. The run must have Options.Queues. source is an index in All. Window, source and tag may be AnyWindow
// and Any.
func (r *Rank) TestMatching(w Window, source, tag int, count uint64) bool {
	_, came := r.testMatch(w, source, tag, count)
	return came
}

// WaitMatching waits until it can take count notifications that match.
func (r *Rank) WaitMatching(w Window, source, tag int, count uint64) bool {
	_, came := r.waitMatch(w, source, tag, count)
	return came
}

// Notification is the origin of a notification. Source is an index in All. Notifications of Notify and GetNotify have a
// window for which Exists is false.
type Notification struct {
	Window      Window // window of the put, if any
	Source, Tag int    // sending rank and tag
}

// TestOne is TestMatching for one notification, the first that matches, and returns its origin. If it returns
// false, Window is AnyWindow, and Source and Tag are Any.
func (r *Rank) TestOne(w Window, source, tag int) (from Notification, came bool) {
	first, came := r.testMatch(w, source, tag, 1)
	return first.origin(), came
}

// WaitOne waits until it can take a notification that matches, and returns its origin. If it returns false,
// Window is AnyWindow, and Source and Tag are Any.
func (r *Rank) WaitOne(w Window, source, tag int) (from Notification, came bool) {
	first, came := r.waitMatch(w, source, tag, 1)
	return first.origin(), came
}

func (n envelope) origin() Notification {
	w := Window{n.slot, All}
	if w.Exists() {
		w.comm = Comm(n.slot / MaxWindows)
	}
	return Notification{w, n.source, n.tag}
}

// testMatch and waitMatch return the first of the notifications that they take.
func (r *Rank) testMatch(w Window, source, tag int, count uint64) (first envelope, came bool) {
	if r.Failed() || !r.matches(w, source, tag, count) {
		return none, false
	}
	return r.match(envelope{w.slot, source, tag}, count)
}

func (r *Rank) waitMatch(w Window, source, tag int, count uint64) (first envelope, came bool) {
	if r.Failed() || !r.matches(w, source, tag, count) {
		return none, false
	}
	if !r.await(func() bool {
		first, came = r.match(envelope{w.slot, source, tag}, count)
		return came
	}) {
		others := r.state.queues[r.Index(All)].left()
		r.fail(
			failure{
				why: noMatch, expected: int64(count), came: int64(others),
				detail: int64(source)<<32 | int64(uint16(w.slot))<<16 | int64(uint16(tag)),
			},
		)
	}
	return first, came
}

var errNoQueues = fmt.Errorf("it matched notifications without Options.Queues: %w", ErrArgument)

// matches reports whether the run has queues, and window, source, tag and count are valid.
func (r *Rank) matches(w Window, source, tag int, count uint64) bool {
	return r.check(r.state.queues != nil, failure{err: errNoQueues}) && r.validCount(count) &&
		r.check(w == AnyWindow || w.Exists(), failure{why: badWindow, came: int64(w.slot)}) &&
		(tag == Any || r.validTag(tag)) && (source == Any || r.validRank(All, source))
}

func (r *Rank) match(m envelope, count uint64) (first envelope, came bool) {
	return r.state.queues[r.Index(All)].take(m, count)
}

// WaitAny waits for one notification with a tag from firstTag to firstTag+tags-1, takes it, and returns its tag. It
// returns -1 if the wait timed out or the run has ended.
func (r *Rank) WaitAny(firstTag, tags int) int {
	found := -1
	if r.Failed() || !r.check(tags > 0, failure{why: badCount, came: int64(tags)}) || !r.validTag(firstTag) ||
		!r.validTag(firstTag+min(tags, math.MaxInt32)-1) {
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
		r.fail(failure{why: noNotifications, expected: 1, detail: int64(tags)<<32 | int64(firstTag)})
	}
	return found
}

// PutPacket puts bytes so that the target sees each 4 of them together with a number that signals their
// arrival. They take twice as many bytes at the target, starting at a multiple of 16; their number must be a
// multiple of 4. The number must differ from all numbers put there before, also in earlier runs.
func (r *Rank) PutPacket(w Window, to int, offset int64, from []byte, number uint32) {
	if !r.valid(w, to, offset, 2*int64(len(from))) {
		return
	}
	align := alignOf(from)
	wrong := failure{why: badPacket, expected: align, came: int64(len(from)), detail: offset}
	if !r.check(len(from)%4 == 0 && offset%align == 0, wrong) {
		return
	}
	if process := r.state.processOf(r.inWorld(w.comm, to)); process >= 0 {
		r.post(process, message{
			what: msgPacket, to: int64(to), from: int64(r.Index(All)), slot: int64(w.slot), at: offset,
			n: int64(number),
		}, from)
		return
	}
	there := r.Memory(w, to)[offset:][:2*len(from)]
	if r.check(isAligned(there, align), wrong) {
		storePacket(there, from, number)
	}
}

// WaitPacket waits for bytes that were put as a packet with a number at the beginning of at, and copies them.
func (r *Rank) WaitPacket(at, to []byte, number uint32) bool {
	if r.Failed() ||
		!r.check(
			2*len(to) <= len(at),
			failure{why: badRange, expected: int64(len(at)), detail: 2 * int64(len(to)), where: noWindow},
		) {
		return false
	}
	if align := alignOf(to); !r.check(
		len(to)%4 == 0 && isAligned(at, align),
		failure{why: badPacket, expected: align, came: int64(len(to)), detail: -1},
	) {
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

// StartTimer and StopTimer are called by all ranks of a device, and wait for all of them. World.Timings
// returns the time from each start to the next stop.
func (r *Rank) StartTimer() {
	r.Barrier(Device)
	r.timer = time.Now()
}

// StopTimer stops the timer. Without StartTimer it measures nothing.
func (r *Rank) StopTimer() {
	r.Barrier(Device)
	if took := &r.state.took[r.device]; r.local == 0 && len(*took) < maxTimings && !r.timer.IsZero() {
		*took = append(*took, time.Since(r.timer).Nanoseconds())
	}
	r.timer = time.Time{}
}

// Log writes a line to the log of the run: the items one after another, formatted as by fmt.Print except
// that, like in kernels, a bool is 0 or 1, a float32 a float64, and a control character a space. Lines are
// not truncated.
func (r *Rank) Log(items ...any) {
	if r.Failed() {
		return
	}
	var line []byte
	for _, item := range items {
		switch v := item.(type) {
		case bool:
			item = 0
			if v {
				item = 1
			}
		case float32:
			item = float64(v)
		}
		line = fmt.Append(line, item)
	}
	for i, c := range line {
		if c < ' ' {
			line[i] = ' '
		}
	}
	r.state.log.write(r.Index(All), r.state.devices[r.device], string(line))
}

// count is the total number of notifications of a tag that have arrived.
func (r *Rank) count(tag int) *atomic.Uint64 { return &r.state.counts[r.first()+r.local][tag] }

// came returns how many notifications of a tag have arrived and were not taken.
func (r *Rank) came(tag int) uint64 { return r.count(tag).Load() - r.consumed[tag] }

func (r *Rank) take(tag int, count uint64) bool {
	if r.state.queues != nil {
		_, came := r.match(envelope{anySlot, Any, tag}, count)
		return came
	}
	if int64(r.came(tag)-count) < 0 {
		return false
	}
	r.consumed[tag] += count
	return true
}

// Value is the type of a value of PutValue: 4 or 8 bytes.
type Value interface {
	int32 | uint32 | float32 | int64 | uint64 | float64
}

// PutValue puts a value as a packet: the value and its notification in one. At the target it takes twice as
// many bytes, at an offset that is a multiple of that. The number must differ from all numbers put there
// before, also in earlier runs.
func PutValue[T Value](r *Rank, w Window, to int, offset int64, v T, number uint32) {
	r.PutPacket(w, to, offset, bytesIn([]T{v}), number)
}

// WaitValue waits for a value that was put with a number at the beginning of at. The sender may put there
// again once it knows that WaitValue has returned.
func WaitValue[T Value](r *Rank, at []byte, number uint32) (v T, came bool) {
	all := []T{v}
	if !r.WaitPacket(at, bytesIn(all), number) {
		return v, false
	}
	return all[0], true
}

// bytesIn returns the memory of values.
func bytesIn[T Value](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
