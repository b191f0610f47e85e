package ranks

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/halox/halox/streams"
)

// startProxy returns nil where no proxy is needed.
func (w *World) startProxy() *proxy {
	if !w.proxied() {
		return nil
	}
	n := len(w.members)
	p := &proxy{w: w, next: make([]uint64, n), before: make([]uint64, n), stored: make([][]uint64, n), busy: make([]bool, n), totals: map[uint64]uint64{}, arrivals: w.arrivals, done: make(chan error, 1)}
	p.copy = p.deliver
	for i, m := range w.members {
		m.joins.pending, m.joins.used = m.joins.pending[:0], 0
		p.stored[i] = make([]uint64, w.owners[len(w.owners)-1]+1)
		for n := range commands {
			c := m.order(uint64(n))
			c.number, c.reply, c.taken = 0, 0, 0
		}
	}
	go func() {
		err := p.serve()
		p.failed.Store(err != nil)
		if err != nil {
			_ = p.sync() // what copies are under way is of this run
			if w.remote != nil {
				p.leave()
			}
		}
		p.done <- err
	}()
	return p
}

// serve does commands and letters until it is told to stop and there are none.
func (p *proxy) serve() error {
	var since time.Time // when the kernels had ended
	for idle := (pause{}); ; {
		stopping := p.stop.Load()
		some, left, err := p.batch()
		if err != nil {
			return err
		}
		if stopping && !some && !left {
			if p.w.remote == nil {
				return nil
			}
			if since.IsZero() {
				since = time.Now()
			}
			if over, err := p.w.remote.isOver(since); over || err != nil {
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

// leave serves the mail of a run for which the proxy does nothing any more, until it is over everywhere: others wait for answers, and
// are to hear that the run ends.
func (p *proxy) leave() {
	var since time.Time
	for idle := (pause{}); ; idle.serve() {
		_, err := p.w.remote.take(func(int, letter, []byte) error { return nil })
		if err == nil {
			err = p.w.remote.answer()
		}
		over := false
		if err == nil && p.stop.Load() {
			if since.IsZero() {
				since = time.Now()
			}
			over, err = p.w.remote.isOver(since)
		}
		if over || err != nil { // an error of the mail is one of all processes
			return
		}
	}
}

// batch does what is there to be done. It reports whether there was something, and whether commands are left that wait for
// other processes.
func (p *proxy) batch() (some, left bool, err error) {
	w := p.w
	copy(p.before, p.next)
	for i, m := range w.members {
		did, waits, err := p.commands(i, m)
		if err != nil {
			return false, false, fmt.Errorf("ranks: %s: the proxy of %v: %w", w.program.Name, m.device, err)
		}
		some, left = some || did, left || waits
	}
	if w.remote != nil {
		came, err := w.remote.take(p.take)
		if err != nil {
			return false, false, fmt.Errorf("ranks: %s: the proxy: %w", w.program.Name, err)
		}
		some = some || came
	}
	if err := p.end(); err != nil {
		return false, false, fmt.Errorf("ranks: %s: the proxy: %w", w.program.Name, err)
	}
	return some, left, nil
}

// end waits until the batch is done, and tells who waits for that.
func (p *proxy) end() error {
	if err := p.sync(); err != nil {
		return err
	}
	for i, m := range p.w.members {
		for n := p.before[i]; n < p.next[i]; n++ {
			if c := m.order(n); c.what == fetch && p.w.member(int(c.device)) != nil {
				atomic.StoreUint64(&c.reply, n+1)
			}
		}
		p.free(i, m)
		m.joins.used = 0
	}
	if p.w.remote == nil {
		return nil
	}
	if err := p.answer(); err != nil {
		return err
	}
	return p.w.remote.answer()
}

// free makes room for as many commands as are done. Bytes that were fetched are to be taken first.
func (p *proxy) free(i int, m *member) {
	done := m.controls().done
	for ; done < p.next[i]; done++ {
		if c := m.order(done); c.what == fetch && atomic.LoadUint64(&c.taken) != done+1 {
			break
		}
	}
	atomic.StoreUint64(&m.controls().done, done)
}

// commands begins the commands in the ring of a device. It reports whether there were some, and whether the next one has to wait.
func (p *proxy) commands(i int, m *member) (some, waits bool, err error) {
	p.ring = i
	for {
		n := p.next[i]
		if atomic.LoadUint64(&m.order(n).number) != n+1 {
			break
		}
		if waits, err = p.mustWait(m, m.order(n)); waits || err != nil {
			break
		}
		if err = p.begin(m, n); err != nil {
			break
		}
		p.next[i], some = n+1, true
	}
	if err == nil {
		err = m.joins.flush(p.copy)
	}
	return some, waits, err
}

// mustWait reports whether a command cannot begin yet: for want of room in the mail, or since what the ring has stored at
// other processes is not done, before a barrier.
func (p *proxy) mustWait(m *member, c *command) (bool, error) {
	r := p.w.remote
	if r == nil || c.device >= uint64(len(p.w.owners)) {
		return false, nil
	}
	if p.w.member(int(c.device)) == nil && r.mail.IsFull(p.w.owners[c.device]) {
		return true, nil
	}
	if c.what != raiseBarrier {
		return false, nil
	}
	if err := m.joins.flush(p.copy); err != nil {
		return false, err
	}
	for process, sent := range p.stored[p.ring] {
		if process != r.processes.Rank && !r.isSettled(process, sent) {
			return true, nil
		}
	}
	return false, nil
}

// begin begins the n-th command of a device.
func (p *proxy) begin(m *member, n uint64) error {
	c := m.order(n)
	if c.device >= uint64(len(p.w.owners)) || c.bytes < 1 || c.bytes > payload || c.at < spaceBegin || c.at >= math.MaxInt64-payload {
		return fmt.Errorf("command %d of kind %d for device %d, of %d bytes", n, c.what, c.device, c.bytes)
	}
	here := m.payloadOf(n, c.bytes)
	joins := m.joins.takes(c)
	if !joins || m.joins.overlaps(c) {
		if err := m.joins.flush(p.copy); err != nil {
			return err
		}
	}
	if joins {
		m.joins.add(c, here)
		return nil
	}
	away := p.w.member(int(c.device)) == nil
	switch {
	case c.what == store:
		return p.deliver(c.device, c.at, here)
	case c.what == fetch && away:
		return p.post(c, letter{what: letterFetch, n: int64(c.bytes), from: int64(m.index), slot: int64(n)})
	case c.what == fetch:
		return p.copyFrom(here, c.device, c.at)
	case c.what == raise && away:
		return p.post(c, letter{what: letterRaise})
	case c.what == raiseBarrier && away:
		return p.post(c, letter{what: letterRaiseBarrier})
	case c.what == raise || c.what == raiseBarrier:
		return p.raise(c.what == raiseBarrier, c.device, c.at, here)
	}
	return fmt.Errorf("command %d of kind %d for device %d", n, c.what, c.device)
}

// post has a letter sent to the process whose device a command is for.
func (p *proxy) post(c *command, l letter) error {
	l.to, l.at = int64(c.device), int64(c.at)
	return p.w.remote.post(p.w.owners[c.device], l, nil)
}

// deliver has bytes stored at a device, by a copy or by a letter.
func (p *proxy) deliver(device, at uint64, from streams.Span) error {
	if p.w.member(int(device)) != nil {
		return p.copyTo(device, at, from)
	}
	process := p.w.owners[device]
	err := p.w.remote.post(process, letter{what: letterStore, to: int64(device), at: int64(at)}, from.Memory.Bytes()[from.Offset:from.Offset+from.Length])
	p.stored[p.ring][process] = p.w.remote.sent[process].Load()
	return err
}
