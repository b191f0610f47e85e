package ranks

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// proxy serves GPUs that cannot access each other while their kernels run: it executes the commands that
// their ranks write into rings in pinned host memory, each ring in order.
//
// Commands come in batches: all commands in the rings. Copies are queued on a stream of the device whose
// memory is written or read, which keeps the order of any two devices, and the batch is done when these
// streams are. Small stores of a ring between two of its other commands may be reordered, and stores to
// consecutive addresses are one copy. Counts are stored whole, by one thread, from the payloads of their
// commands.
//
// Commands for devices of other processes are sent as messages, in the order of the ring, and executed by the
// proxies there: only the process that owns a device copies to it. A barrier's command waits until all
// earlier stores of its ring at other processes are complete.
type proxy struct {
	w      *World
	next   []uint64 // commands so far, by device of this process
	before []uint64 // next at the start of the batch
	// By device of this process and by process: number of storing messages there at the last message of the
	// ring
	stored       [][]uint64
	busy         []bool            // by device: its stream has copies
	totals       map[uint64]uint64 // values of counts, by device address
	arrivals     *streams.Memory   // pinned bytes of messages of this batch; nil without other processes
	used         int64             // used bytes of arrivals
	fetched      []fetched         // answers to other processes of this batch
	stop         atomic.Bool
	failed       atomic.Bool
	otherProcess atomic.Bool // another process has ended the run
	done         chan error
	copy         func(device, at uint64, from streams.Span) error // deliver for stores of a ring
	ring         int                                              // ring whose stores copy copies
}

// fetched is the answer to a message that requests bytes.
type fetched struct {
	process int
	message
	bytes streams.Span
}

// errProxy ends a run whose proxy has failed; finish returns the error of the proxy.
var errProxy = errors.New("ranks: the proxy has failed")

// gaveUp reports whether the proxy has failed.
func (p *proxy) gaveUp() bool { return p != nil && p.failed.Load() }

// endedByOther reports whether another process has ended the run.
func (p *proxy) endedByOther() bool { return p != nil && p.otherProcess.Load() }

// finish returns the error of the proxy, after it has executed all commands of ended kernels.
func (p *proxy) finish() error {
	if p == nil {
		return nil
	}
	p.stop.Store(true)
	return <-p.done
}

// command returns the n-th command of a device.
func (m *member) command(n uint64) *command {
	return &unsafe.Slice((*command)(unsafe.Pointer(&m.commands.Bytes()[0])), commands)[n%commands]
}

// payloadOf returns the payload of the n-th command of a device.
func (m *member) payloadOf(n uint64, bytes uint64) streams.Span {
	offset := int64(n%commands)*int64(unsafe.Sizeof(command{})) + int64(unsafe.Offsetof(command{}.payload))
	return m.commands.Span(offset, int64(bytes))
}

// memory returns bytes at an address of a device of this process.
func (p *proxy) memory(device, at uint64, bytes int64) (*member, streams.Span, error) {
	m := p.w.member(int(min(device, MaxDevices)))
	if m == nil || at < spaceBegin || at >= math.MaxInt64-uint64(bytes) {
		return nil, streams.Span{}, fmt.Errorf("%d bytes at %#x are not in memory of device %d", bytes, at, device)
	}
	return m, m.space.Span(int64(at)-spaceBegin, bytes), nil
}

// copyTo queues a copy to memory of a device of this process.
func (p *proxy) copyTo(device, at uint64, from streams.Span) error {
	to, there, err := p.memory(device, at, from.Length)
	if err != nil {
		return err
	}
	p.busy[to.index-p.w.before] = true
	return to.proxied.Copy(there, from)
}

// copyFrom queues a copy of memory of a device of this process.
func (p *proxy) copyFrom(to streams.Span, device, at uint64) error {
	from, there, err := p.memory(device, at, to.Length)
	if err != nil {
		return err
	}
	p.busy[from.index-p.w.before] = true
	return from.proxied.Copy(to, there)
}

// raise queues a store of a count, one higher than before, to a device of this process. by is pinned memory
// for it.
func (p *proxy) raise(ofBarrier bool, device, at uint64, by streams.Span) error {
	total, known := p.totals[at]
	if !known && !ofBarrier {
		total = p.w.first
	}
	if ofBarrier {
		if err := p.sync(); err != nil { // other devices may read from a third what this one stored there
			return err
		}
	}
	p.totals[at] = total + 1
	*(*uint64)(unsafe.Pointer(&by.Memory.Bytes()[by.Offset])) = total + 1
	return p.copyTo(device, at, by)
}

// sync waits until all copies are done.
func (p *proxy) sync() error {
	for i, m := range p.w.members {
		if !p.busy[i] {
			continue
		}
		if err := m.proxied.Sync(p.w.grace); err != nil {
			return err
		}
		p.busy[i] = false
	}
	return nil
}

// startProxy returns nil if no proxy is needed.
func (w *World) startProxy() *proxy {
	if !w.proxied() {
		return nil
	}
	n := len(w.members)
	p := &proxy{
		w: w, next: make([]uint64, n), before: make([]uint64, n), stored: make([][]uint64, n), busy: make([]bool, n),
		totals: map[uint64]uint64{}, arrivals: w.arrivals, done: make(chan error, 1),
	}
	p.copy = p.deliver
	for i, m := range w.members {
		m.batch.pending, m.batch.used = m.batch.pending[:0], 0
		p.stored[i] = make([]uint64, w.owners[len(w.owners)-1]+1)
		for n := range commands {
			c := m.command(uint64(n))
			c.number, c.reply, c.taken = 0, 0, 0
		}
	}
	go func() {
		err := p.serve()
		p.failed.Store(err != nil)
		if err != nil {
			_ = p.sync() // complete the copies of this run
			if w.remote != nil {
				p.leave()
			}
		}
		p.done <- err
	}()
	return p
}

// serve executes commands and messages until it is stopped and none are left.
func (p *proxy) serve() error {
	return p.w.remote.serve(&p.stop, p.batch)
}

// leave acknowledges messages after the proxy has failed, until the run is over on all processes: the others wait for
// answers, and must learn that the run ends. An error of the queue is an error of all processes.
func (p *proxy) leave() {
	ignore := func(int, message, []byte) error { return nil }
	_ = p.w.remote.serve(&p.stop, func() (some, left bool, err error) {
		some, err = p.w.remote.take(ignore)
		return some, false, errors.Join(err, p.w.remote.answer())
	})
}

// batch executes all commands and messages that have arrived. some reports whether there were any, left
// whether commands have to wait for other processes.
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

// end waits until the batch is complete, and notifies the ranks that wait for it.
func (p *proxy) end() error {
	if err := p.sync(); err != nil {
		return err
	}
	for i, m := range p.w.members {
		for n := p.before[i]; n < p.next[i]; n++ {
			if c := m.command(n); c.what == fetch && p.w.member(int(c.device)) != nil {
				atomic.StoreUint64(&c.reply, n+1)
			}
		}
		p.free(i, m)
		m.batch.used = 0
	}
	if p.w.remote == nil {
		return nil
	}
	if err := p.answer(); err != nil {
		return err
	}
	return p.w.remote.answer()
}

// free frees the slots of completed commands. Ranks take fetched bytes first.
func (p *proxy) free(i int, m *member) {
	done := m.controls().done
	for ; done < p.next[i]; done++ {
		if c := m.command(done); c.what == fetch && atomic.LoadUint64(&c.taken) != done+1 {
			break
		}
	}
	atomic.StoreUint64(&m.controls().done, done)
}

// commands begins the commands in the ring of a device. some reports whether there were any, waits whether
// the next one has to wait.
func (p *proxy) commands(i int, m *member) (some, waits bool, err error) {
	p.ring = i
	for {
		n := p.next[i]
		if atomic.LoadUint64(&m.command(n).number) != n+1 {
			break
		}
		if waits, err = p.mustWait(m, m.command(n)); waits || err != nil {
			break
		}
		if err = p.begin(m, n); err != nil {
			break
		}
		p.next[i], some = n+1, true
	}
	if err == nil {
		err = m.batch.flush(p.copy)
	}
	return some, waits, err
}

// mustWait reports whether a command cannot begin yet: the queue is full, or it is a barrier and stores of
// the ring at other processes are not complete.
func (p *proxy) mustWait(m *member, c *command) (bool, error) {
	r := p.w.remote
	if r == nil || c.device >= uint64(len(p.w.owners)) {
		return false, nil
	}
	if p.w.member(int(c.device)) == nil && r.queue.IsFull(p.w.owners[c.device]) {
		return true, nil
	}
	if c.what != raiseBarrier {
		return false, nil
	}
	if err := m.batch.flush(p.copy); err != nil {
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
	c := m.command(n)
	if c.device >= uint64(len(p.w.owners)) || c.bytes < 1 || c.bytes > payload || c.at < spaceBegin ||
		c.at >= math.MaxInt64-payload {
		return fmt.Errorf("command %d of kind %d for device %d with %d bytes is invalid", n, c.what, c.device, c.bytes)
	}
	here := m.payloadOf(n, c.bytes)
	batch := m.batch.takes(c)
	if !batch || m.batch.overlaps(c) {
		if err := m.batch.flush(p.copy); err != nil {
			return err
		}
	}
	if batch {
		m.batch.add(c, here)
		return nil
	}
	away := p.w.member(int(c.device)) == nil
	switch {
	case c.what == store:
		return p.deliver(c.device, c.at, here)
	case c.what == fetch && away:
		return p.post(c, message{what: msgFetch, n: int64(c.bytes), from: int64(m.index), slot: int64(n)})
	case c.what == fetch:
		return p.copyFrom(here, c.device, c.at)
	case c.what == raise && away:
		return p.post(c, message{what: msgRaise})
	case c.what == raiseBarrier && away:
		return p.post(c, message{what: msgRaiseBarrier})
	case c.what == raise || c.what == raiseBarrier:
		return p.raise(c.what == raiseBarrier, c.device, c.at, here)
	}
	return fmt.Errorf("command %d of kind %d for device %d is invalid", n, c.what, c.device)
}

// post queues a message to the process of the device of a command.
func (p *proxy) post(c *command, msg message) error {
	msg.to, msg.at = int64(c.device), int64(c.at)
	return p.w.remote.post(p.w.owners[c.device], msg, nil)
}

// deliver stores bytes at a device, by a copy or by a message.
func (p *proxy) deliver(device, at uint64, from streams.Span) error {
	if p.w.member(int(device)) != nil {
		return p.copyTo(device, at, from)
	}
	process := p.w.owners[device]
	err := p.w.remote.post(
		process, message{what: msgStore, to: int64(device), at: int64(at)},
		from.Memory.Bytes()[from.Offset:from.Offset+from.Length],
	)
	p.stored[p.ring][process] = p.w.remote.sent[process].Load()
	return err
}

// arrivalBytes is the size of the pinned memory for bytes of messages that are copied at once.
const arrivalBytes = 4 * mpi.MaxRecord

// take does what a message requests. Answers are sent later, by answer.
func (p *proxy) take(from int, msg message, body []byte) error {
	device, at := uint64(msg.to), uint64(msg.at)
	switch msg.what {
	case msgEnded:
		p.otherProcess.Store(true)
		return nil
	case msgStore:
		room, err := p.arrival(int64(len(body)))
		if err != nil {
			return err
		}
		copy(room.Memory.Bytes()[room.Offset:], body)
		return p.copyTo(device, at, room)
	case msgRaise, msgRaiseBarrier:
		room, err := p.arrival(8)
		if err != nil {
			return err
		}
		return p.raise(msg.what == msgRaiseBarrier, device, at, room)
	case msgFetch:
		if msg.n < 1 || msg.n > payload {
			return fmt.Errorf("a message requests %d bytes", msg.n)
		}
		room, err := p.arrival(msg.n)
		if err != nil {
			return err
		}
		p.fetched = append(p.fetched, fetched{from, message{what: msgFetched, to: msg.from, slot: msg.slot}, room})
		return p.copyFrom(room, device, at)
	case msgFetched:
		m := p.w.member(int(msg.to))
		if m == nil || uint64(msg.slot) >= p.next[m.index-p.w.before] || len(body) > payload {
			return fmt.Errorf("a message has %d bytes for command %d of device %d", len(body), msg.slot, msg.to)
		}
		c := m.command(uint64(msg.slot))
		copy(c.payload[:], body)
		atomic.StoreUint64(&c.reply, uint64(msg.slot)+1)
		return nil
	}
	return fmt.Errorf("a message has unknown kind %d", msg.what)
}

// arrival returns pinned memory, aligned to 8 bytes, for use until the batch is complete.
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

// answer waits for all copies, and sends the bytes that other processes requested.
func (p *proxy) answer() error {
	if err := p.sync(); err != nil {
		return err
	}
	for _, f := range p.fetched {
		b := f.bytes
		if err := p.w.remote.post(f.process, f.message, b.Memory.Bytes()[b.Offset:b.Offset+b.Length]); err != nil {
			return err
		}
	}
	p.fetched, p.used = p.fetched[:0], 0
	return nil
}
