package streams

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/halox/halox/internal/hostmemory"
)

// hostLedger counts what the devices of a platform take of the host's memory, and refuses what is not
// available.
type hostLedger struct {
	now  func() (hostmemory.Memory, error) // nil where nobody knows
	lazy bool                              // the host has given blocks whose pages it has yet to find

	mu     sync.Mutex
	used   int64
	credit int64 // bytes that need no look at the host before then
	then   time.Time
}

// A look at the host serves for so long, and for this part of what was free.
const (
	creditTime = time.Second
	creditPart = 16
)

// addressSpace bounds blocks where nobody knows what is free.
const addressSpace = 1 << 46

func newHostLedger(lazy bool) *hostLedger {
	l := &hostLedger{lazy: lazy}
	if host, err := hostmemory.Open(); err == nil {
		l.now = host.Now
	}
	return l
}

// take counts a block that is about to be allocated, or returns ErrOutOfMemory.
func (l *hostLedger) take(bytes int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		if bytes > addressSpace-l.used {
			return fmt.Errorf("%w: %s are more than the host can address", ErrOutOfMemory, Size(bytes))
		}
		l.used += bytes
		return nil
	}
	if bytes <= l.credit && time.Now().Before(l.then) {
		l.used, l.credit = l.used+bytes, l.credit-bytes
		return nil
	}
	m, err := l.look()
	if err == nil && bytes > m.Free {
		debug.FreeOSMemory() // blocks that were closed may not have been given back yet
		m, err = l.look()
	}
	if err != nil {
		return err
	}
	if bytes > m.Free {
		needs, has := sizes(bytes, m.Free)
		return fmt.Errorf("%w: %s are needed, and %s of the host's memory are available: %s", ErrOutOfMemory, needs, has, m.Source)
	}
	l.used, l.credit, l.then = l.used+bytes, (m.Free-bytes)/creditPart, time.Now().Add(creditTime)
	return nil
}

// give counts a block that was freed.
func (l *hostLedger) give(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= bytes
}

// free returns what may be allocated, and of how much; zeros where nobody knows.
func (l *hostLedger) free() (hostmemory.Memory, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return hostmemory.Memory{}, nil
	}
	return l.look()
}

// look reads what is free. Blocks take pages when they are first touched: what of them the process does not
// hold yet is not free any more.
func (l *hostLedger) look() (m hostmemory.Memory, err error) {
	m, err = l.now()
	if err != nil {
		return m, errors.Join(errors.New("ask for the host's memory"), err)
	}
	if l.lazy {
		m.Free = max(0, m.Free-max(0, l.used-m.Resident))
	}
	return m, nil
}
