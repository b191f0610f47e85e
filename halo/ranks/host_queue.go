package ranks

import (
	"slices"
	"sync"
)

// notice is a notification that keeps where it comes from, or, with Any and anySlot, which ones match.
type notice struct{ slot, source, tag int }

var none = notice{anySlot, Any, Any}

func (n notice) matches(m notice) bool {
	return (m.slot == anySlot || m.slot == n.slot) && (m.source == Any || m.source == n.source) && (m.tag == Any || m.tag == n.tag)
}

// hostQueue is the notifications that a rank has not taken, in the order in which they came. As in kernels, it has read some
// of them, and there is room for `queued` unread ones from each device of this process.
type hostQueue struct {
	mu     sync.Mutex
	kept   []notice // read, and not taken
	unread []unreadNotice
	from   [MaxDevices]int // unread, of each device
	drops  bool            // what comes: the rank is at its last barrier
}

// unreadNotice is a notification and the device that sent it, elsewhere if that is one of another process.
type unreadNotice struct {
	notice
	device int
}

const elsewhere = -1

func (q *hostQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kept, q.unread, q.from, q.drops = q.kept[:0], q.unread[:0], [MaxDevices]int{}, false
}

// drop drops what comes from now on.
func (q *hostQueue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drops = true
}

// add adds a notification and returns true, or returns false if the queue of its device is full.
func (q *hostQueue) add(n unreadNotice) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drops {
		return true
	}
	if n.device != elsewhere {
		if q.from[n.device] == queued {
			return false
		}
		q.from[n.device]++
	}
	q.unread = append(q.unread, n)
	return true
}

// read reads what there is, as far as it can be kept.
func (q *hostQueue) read() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.readLocked()
}

func (q *hostQueue) readLocked() {
	some := min(len(q.unread), keptMost-len(q.kept))
	for _, n := range q.unread[:some] {
		if n.device != elsewhere {
			q.from[n.device]--
		}
		q.kept = append(q.kept, n.notice)
	}
	q.unread = slices.Delete(q.unread, 0, some)
}

// left returns how many it has read and not taken.
func (q *hostQueue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.kept)
}

// take reads what there is, takes the first count that match, if there are as many, and returns the first of them.
func (q *hostQueue) take(m notice, count uint64) (first notice, all bool) {
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
	q.kept = slices.DeleteFunc(q.kept, func(n notice) bool {
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
