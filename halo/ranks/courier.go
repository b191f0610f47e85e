package ranks

import (
	"fmt"
	"sync/atomic"
	"time"
)

// courier is the proxy of host devices: it does what letters of other processes say. What ranks have done elsewhere they post
// themselves.
type courier struct {
	h    *hostState
	stop atomic.Bool
	done chan struct{}
}

// startCourier returns nil where there are no other processes.
func (h *hostState) startCourier() (*courier, error) {
	if h.remote == nil {
		return nil, nil
	}
	if err := h.remote.begin(); err != nil {
		return nil, err
	}
	c := &courier{h: h, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if err := c.serve(); err != nil {
			h.end(err)
		}
	}()
	return c, nil
}

// finish has the courier end once the ranks of all processes have. What it fails of is the end of the run.
func (c *courier) finish() {
	if c != nil {
		c.stop.Store(true)
		<-c.done
	}
}

// serve does letters until the run has ended on all processes.
func (c *courier) serve() error {
	var since time.Time // when the ranks of this process had ended
	for idle := (pause{}); ; {
		stopping := c.stop.Load()
		some, err := c.h.remote.take(c.take)
		if err == nil {
			err = c.h.remote.answer()
		}
		if err != nil {
			return fmt.Errorf("ranks: letters of other processes: %w", err)
		}
		if stopping {
			if since.IsZero() {
				since = time.Now()
			}
			if over, err := c.h.remote.isOver(since); over || err != nil {
				return err
			}
		}
		if some {
			idle = pause{}
		} else {
			idle.serve()
		}
	}
}

// take does what a letter says. A letter that is wrong ends the run. The courier goes on, since others wait for the letters that follow.
func (c *courier) take(from int, l letter, body []byte) error {
	if err := c.do(from, l, body); err != nil {
		c.h.end(fmt.Errorf("ranks: letters of other processes: %w", err))
	}
	return nil
}

func (c *courier) do(from int, l letter, body []byte) error {
	h := c.h
	size := int64(h.size())
	if l.from < 0 || l.from >= size {
		return fmt.Errorf("a letter of rank %d", l.from)
	}
	switch l.what {
	case letterEnded:
		h.end(errElsewhere)
		return nil
	case letterArrive:
		h.others.add(uint64(l.n))
		return nil
	case letterWindow:
		if l.slot < 0 || l.slot >= 2*MaxWindows {
			return fmt.Errorf("a letter for window %d", l.slot)
		}
		h.sizes[l.slot][l.from] = l.n
		return nil
	}
	if l.to < 0 || l.to >= size || h.away(int(l.to)) >= 0 {
		return fmt.Errorf("a letter for rank %d", l.to)
	}
	switch l.what {
	case letterPut, letterPacket, letterGet:
		return c.access(from, l, body)
	case letterGot:
		h.replies[int(l.to)-h.before*h.ranks].take(body)
		return nil
	case letterNotify:
		if l.at < 0 || l.at >= Tags {
			return fmt.Errorf("a letter for tag %d", l.at)
		}
		h.notify(int(l.to), elsewhere, notice{int(l.slot), int(l.from), int(l.at)})
		return nil
	case letterValues, letterTaken:
		return c.pass(l, body)
	case letterSent, letterRead:
		return c.carry(l, body)
	}
	return fmt.Errorf("a letter of kind %d", l.what)
}

// access reads or writes the window of a rank.
func (c *courier) access(from int, l letter, body []byte) error {
	n := l.what.room(int64(len(body)))
	if l.what == letterGet {
		n = l.n
	}
	if l.slot < 0 || l.slot >= 2*MaxWindows {
		return fmt.Errorf("a letter for window %d", l.slot)
	}
	window := c.h.windows[l.slot][l.to]
	if l.at < 0 || n < 0 || l.at > int64(len(window))-n {
		return fmt.Errorf("a letter for %d bytes at offset %d of a window of %d", n, l.at, len(window))
	}
	if l.what == letterPacket && (len(body)%4 != 0 || l.at%8 != 0) {
		return fmt.Errorf("a letter with a packet of %d bytes for offset %d of a window", len(body), l.at)
	}
	there := window[l.at:][:n]
	if align := alignOf(body); l.what == letterPacket && !isAligned(there, align) {
		wrong := failure{why: badPacket, rank: int(l.from), expected: align, came: int64(len(body)), detail: l.at}
		c.h.end(wrong.describe(deviceName("of "+c.h.remote.processes.Name(from)), c.h.limit)) // only here it is known where the window begins
		return nil
	}
	switch l.what {
	case letterPut:
		copy(there, body)
	case letterPacket:
		storePacket(there, body, uint32(l.n))
	case letterGet:
		return c.h.remote.post(from, letter{what: letterGot, to: l.from}, there)
	}
	return nil
}

// pass takes values of a collective, or learns that they were taken.
func (c *courier) pass(l letter, body []byte) error {
	if l.slot < 0 || l.slot >= maxLevels {
		return fmt.Errorf("a letter for level %d", l.slot)
	}
	if l.what == letterTaken {
		c.h.inboxes[All][l.from][l.slot].full.Store(false)
		return nil
	}
	box := &c.h.inboxes[All][l.to][l.slot]
	if l.at == 0 {
		box.values = box.values[:0]
	}
	box.values = append(box.values, body...)
	if int64(len(box.values)) == l.n {
		box.full.Store(true)
	}
	return nil
}

// carry takes a message of a channel, or learns how many were read.
func (c *courier) carry(l letter, body []byte) error {
	if l.slot < 0 || l.slot >= int64(len(c.h.channels)) {
		return fmt.Errorf("a letter for channel %d", l.slot)
	}
	channel := c.h.channels[l.slot]
	if l.what == letterRead {
		channel.read.Store(uint64(l.n))
		return nil
	}
	channel.put(body)
	return nil
}
