package ranks

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/streams"
)

// proxy serves GPUs that do not reach each other while their kernels run: it does what their ranks write into rings of
// commands in pinned host memory, each ring in its order.
//
// Commands come in batches: all that the rings hold. Their copies are queued on a stream of the device whose memory it is,
// which keeps the order of any two devices, and the batch is done once these streams are. Small stores of a ring between
// two of its other commands may change places, and those whose addresses follow each other are one copy. Counts are stored whole, by
// one thread, from the payloads of their commands.
type proxy struct {
	w      *World
	next   []uint64          // commands of each device so far
	before []uint64          // the same when the batch began
	busy   []bool            // whether its stream has copies
	totals map[uint64]uint64 // of counts, by device address
	stop   atomic.Bool
	failed atomic.Bool
	done   chan error
	copy   func(device, at uint64, from streams.Span) error // copyTo
}

// errProxy goes with the error that finish returns.
var errProxy = errors.New("ranks: the proxy has failed")

// startProxy returns nil where no proxy is needed.
func (w *World) startProxy() *proxy {
	if !w.proxied() {
		return nil
	}
	p := &proxy{w: w, next: make([]uint64, len(w.members)), before: make([]uint64, len(w.members)), busy: make([]bool, len(w.members)), totals: map[uint64]uint64{}, done: make(chan error, 1)}
	p.copy = p.copyTo
	for _, m := range w.members {
		m.joins.pending, m.joins.used = m.joins.pending[:0], 0
		for i := range commands {
			c := m.order(uint64(i))
			c.number, c.reply, c.taken = 0, 0, 0
		}
	}
	go func() {
		err := p.serve()
		p.failed.Store(err != nil)
		p.done <- err
	}()
	return p
}

// gaveUp reports whether the proxy has failed.
func (p *proxy) gaveUp() bool { return p != nil && p.failed.Load() }

// finish has the proxy end once it has done all that kernels which have ended left, and returns its error.
func (p *proxy) finish() error {
	if p == nil {
		return nil
	}
	p.stop.Store(true)
	return <-p.done
}

// order returns the n-th command of a device.
func (m *member) order(n uint64) *command {
	return &unsafe.Slice((*command)(unsafe.Pointer(&m.orders.Bytes()[0])), commands)[n%commands]
}

// payloadOf is that of the n-th command of a device.
func (m *member) payloadOf(n uint64, bytes uint64) streams.Span {
	offset := int64(n%commands)*int64(unsafe.Sizeof(command{})) + int64(unsafe.Offsetof(command{}.payload))
	return m.orders.Span(offset, int64(bytes))
}

// serve does commands until it is told to stop and there are none.
func (p *proxy) serve() error {
	for idle := (pause{}); ; {
		stopping := p.stop.Load()
		copy(p.before, p.next)
		some := false
		for _, m := range p.w.members {
			for {
				n := p.next[m.index]
				if atomic.LoadUint64(&m.order(n).number) != n+1 {
					break
				}
				if err := p.begin(m, n); err != nil {
					return fmt.Errorf("ranks: %s: the proxy of %v: %w", p.w.program.Name, m.device, err)
				}
				p.next[m.index], some = n+1, true
			}
			if err := p.flush(m); err != nil {
				return fmt.Errorf("ranks: %s: the proxy of %v: %w", p.w.program.Name, m.device, err)
			}
		}
		if err := p.sync(); err != nil {
			return fmt.Errorf("ranks: %s: the proxy: %w", p.w.program.Name, err)
		}
		for _, m := range p.w.members {
			for n := p.before[m.index]; n < p.next[m.index]; n++ {
				if c := m.order(n); c.what == fetch {
					atomic.StoreUint64(&c.reply, n+1)
				}
			}
			p.free(m)
			m.joins.used = 0
		}
		switch {
		case some:
			idle = pause{}
		case stopping:
			return nil
		default:
			idle.wait()
		}
	}
}

// free makes room for as many commands as are done. Bytes that were fetched are to be taken first.
func (p *proxy) free(m *member) {
	done := m.controls().done
	for ; done < p.next[m.index]; done++ {
		if c := m.order(done); c.what == fetch && atomic.LoadUint64(&c.taken) != done+1 {
			break
		}
	}
	atomic.StoreUint64(&m.controls().done, done)
}

// begin queues the copy of the n-th command of a device.
func (p *proxy) begin(m *member, n uint64) error {
	c := m.order(n)
	if c.device >= uint64(len(p.w.members)) || c.bytes < 1 || c.bytes > payload || c.at < spaceBegin || c.at >= math.MaxInt64-payload {
		return fmt.Errorf("command %d of kind %d for device %d, of %d bytes", n, c.what, c.device, c.bytes)
	}
	here := m.payloadOf(n, c.bytes)
	joins := m.joins.takes(c)
	if !joins || m.joins.overlaps(c) {
		if err := p.flush(m); err != nil {
			return err
		}
	}
	if joins {
		m.joins.add(c, here)
		return nil
	}
	switch c.what {
	case store:
	case fetch:
		to := p.w.members[c.device]
		p.busy[to.index] = true
		return to.proxied.Copy(here, to.space.Span(int64(c.at)-spaceBegin, int64(c.bytes)))
	case raise, raiseBarrier:
		total, known := p.totals[c.at]
		if !known && c.what == raise {
			total = p.w.first
		}
		if c.what == raiseBarrier {
			if err := p.sync(); err != nil { // other devices may ask a third for what this one stored there
				return err
			}
		}
		p.totals[c.at] = total + 1
		*(*uint64)(unsafe.Pointer(&c.payload)) = total + 1
	default:
		return fmt.Errorf("command %d of kind %d for device %d", n, c.what, c.device)
	}
	return p.copyTo(c.device, c.at, here)
}

// copyTo queues a copy to memory of a device.
func (p *proxy) copyTo(device, at uint64, from streams.Span) error {
	to := p.w.members[device]
	p.busy[to.index] = true
	return to.proxied.Copy(to.space.Span(int64(at)-spaceBegin, from.Length), from)
}

// flush queues the stores of a ring that were gathered.
func (p *proxy) flush(m *member) error { return m.joins.flush(p.copy) }

// sync waits until all copies are done.
func (p *proxy) sync() error {
	for _, m := range p.w.members {
		if !p.busy[m.index] {
			continue
		}
		if err := m.proxied.Sync(p.w.options.Limit); err != nil {
			return err
		}
		p.busy[m.index] = false
	}
	return nil
}
