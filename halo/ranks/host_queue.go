package ranks

import (
	"slices"
	"sync"
)

// notice is a notification that keeps where it comes from, or, with Any, which ones match.
type notice struct{ slot, source, tag int }

func (n notice) matches(m notice) bool {
	return (m.slot == Any || m.slot == n.slot) && (m.source == Any || m.source == n.source) && (m.tag == Any || m.tag == n.tag)
}

// hostQueue is the notifications that a rank has not taken, in the order in which they came.
type hostQueue struct {
	mu  sync.Mutex
	all []notice
}

func (q *hostQueue) add(n notice) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, n)
}

func (q *hostQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.all)
}

// take takes the first count that match, if there are as many.
func (q *hostQueue) take(m notice, count uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := uint64(0)
	for _, n := range q.all {
		if n.matches(m) {
			found++
		}
	}
	if found < count {
		return false
	}
	q.all = slices.DeleteFunc(q.all, func(n notice) bool {
		taken := count > 0 && n.matches(m)
		if taken {
			count--
		}
		return taken
	})
	return true
}
