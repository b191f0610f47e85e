package ranks

import (
	"fmt"
	"sync/atomic"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// arrivalBytes is how much of what comes in letters is copied at once.
const arrivalBytes = 4 * mpi.MaxRecord

// take does what letters say that have come, as far as it is not to be answered.
func (p *proxy) take(from int, l letter, body []byte) error {
	device, at := uint64(l.to), uint64(l.at)
	switch l.what {
	case letterEnded:
		p.elsewhere.Store(true)
		return nil
	case letterStore:
		room, err := p.arrival(int64(len(body)))
		if err != nil {
			return err
		}
		copy(room.Memory.Bytes()[room.Offset:], body)
		return p.copyTo(device, at, room)
	case letterRaise, letterRaiseBarrier:
		room, err := p.arrival(8)
		if err != nil {
			return err
		}
		return p.raise(l.what == letterRaiseBarrier, device, at, room)
	case letterFetch:
		if l.n < 1 || l.n > payload {
			return fmt.Errorf("a letter that asks for %d bytes", l.n)
		}
		room, err := p.arrival(l.n)
		if err != nil {
			return err
		}
		p.fetched = append(p.fetched, fetched{from, letter{what: letterFetched, to: l.from, slot: l.slot}, room})
		return p.copyFrom(room, device, at)
	case letterFetched:
		m := p.w.member(int(l.to))
		if m == nil || uint64(l.slot) >= p.next[m.index-p.w.before] || len(body) > payload {
			return fmt.Errorf("a letter with %d bytes for command %d of device %d", len(body), l.slot, l.to)
		}
		c := m.order(uint64(l.slot))
		copy(c.payload[:], body)
		atomic.StoreUint64(&c.reply, uint64(l.slot)+1)
		return nil
	}
	return fmt.Errorf("a letter of kind %d", l.what)
}

// arrival returns pinned memory that is used until the batch is done: 8-byte aligned.
func (p *proxy) arrival(bytes int64) (streams.Span, error) {
	whole := (bytes + 7) / 8 * 8
	if p.used+whole > p.arrivals.Size() {
		if err := p.answer(); err != nil {
			return streams.Span{}, err
		}
	}
	p.used += whole
	return p.arrivals.Span(p.used-whole, bytes), nil
}

// answer ends the batch of what has come: it waits for all copies, and sends what was asked for.
func (p *proxy) answer() error {
	if err := p.sync(); err != nil {
		return err
	}
	for _, f := range p.fetched {
		b := f.bytes
		if err := p.w.remote.post(f.process, f.letter, b.Memory.Bytes()[b.Offset:b.Offset+b.Length]); err != nil {
			return err
		}
	}
	p.fetched, p.used = p.fetched[:0], 0
	return nil
}
