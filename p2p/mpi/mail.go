package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	binding "github.com/halox/halox/internal/mpi"
)

// MaxRecord is the most bytes that a record of Mail has.
const MaxRecord = parcelBytes - parcelHead - recordHead

const (
	parcelBytes = 64 << 10
	parcelHead  = 8 // how many bytes are used, and whether it is the last one of a turn
	recordHead  = 4 // its length
	atOnce      = 4 // parcels to one process that MPI has
)

// Mail carries records of bytes between this process and all others during a turn, which all begin and end: from each
// to each in order. Records that are put while MPI has enough to send go together. Several goroutines may put; one
// calls Begin, Take, End and Close.
type Mail struct {
	processes *Processes
	tag       int
	lock      sync.Mutex
	peers     []*mailbox // by rank; that of this process is nil
	ended     bool       // nothing more is put in this turn
}

// mailbox is what a process exchanges with one other.
type mailbox struct {
	rank    int
	in      *binding.Memory
	receive binding.Request
	over    bool      // its last parcel of the turn has come
	queue   []*parcel // in order; MPI has the first ones
	sending int       // as many
	free    []*parcel
}

// parcel is a message of MPI: records, one after the other.
type parcel struct {
	memory  *binding.Memory
	used    int
	request binding.Request
}

// NewMail makes mail between all processes. All call it.
func (p *Processes) NewMail() (m *Mail, err error) {
	m = &Mail{processes: p, peers: make([]*mailbox, p.Size()), ended: true}
	if m.tag, err = p.Tags(1); err != nil {
		return nil, err
	}
	for rank := range m.peers {
		if rank == p.Rank {
			continue
		}
		b := &mailbox{rank: rank, over: true}
		if b.in, err = binding.NewMemory(parcelBytes); err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.peers[rank] = b
	}
	return m, nil
}

// Begin begins a turn. The one before is over on all processes.
func (m *Mail) Begin() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.ended = false
	for _, b := range m.others() {
		b.over = false
		if err := m.expect(b); err != nil {
			return m.processes.Fail(fmt.Errorf("mpi: mail from %s: %w", m.processes.Name(b.rank), err))
		}
	}
	return nil
}

// others are the mailboxes that there are.
func (m *Mail) others() (all []*mailbox) {
	for _, b := range m.peers {
		if b != nil {
			all = append(all, b)
		}
	}
	return all
}

// Put has a record sent to another process: a head, and a body behind it. Both may be changed afterwards. After End it
// does nothing. What Put queues leaves with the next Flush.
func (m *Mail) Put(to int, head, body []byte) error {
	n := len(head) + len(body)
	if n > MaxRecord {
		return fmt.Errorf("mpi: a record of %d bytes; %d are possible", n, MaxRecord)
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.ended {
		return nil
	}
	p, err := m.peers[to].room(recordHead + n)
	if err != nil {
		return m.processes.Fail(err)
	}
	binary.LittleEndian.PutUint32(p.memory.Bytes[p.used:], uint32(n))
	p.used += recordHead
	p.used += copy(p.memory.Bytes[p.used:], head)
	p.used += copy(p.memory.Bytes[p.used:], body)
	return nil
}

// room returns a parcel, behind all that MPI has, with room for so many bytes.
func (b *mailbox) room(bytes int) (*parcel, error) {
	if n := len(b.queue); n > b.sending && b.queue[n-1].used+bytes <= parcelBytes {
		return b.queue[n-1], nil
	}
	var p *parcel
	if n := len(b.free); n > 0 {
		p, b.free = b.free[n-1], b.free[:n-1]
	} else {
		memory, err := binding.NewMemory(parcelBytes)
		if err != nil {
			return nil, err
		}
		p = &parcel{memory: memory}
	}
	p.used = parcelHead
	binary.LittleEndian.PutUint32(p.memory.Bytes[4:], 0)
	b.queue = append(b.queue, p)
	return p, nil
}

// IsFull reports whether so much waits to be sent to a process that who can wait should.
func (m *Mail) IsFull(to int) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return len(m.peers[to].queue) >= 2*atOnce
}

// Flush has MPI send what was put, as far as it does not have enough to send already. It is called again and again.
func (m *Mail) Flush() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, b := range m.peers {
		if b == nil {
			continue
		}
		if err := m.push(b); err != nil {
			return m.processes.Fail(fmt.Errorf("mpi: mail to %s: %w", m.processes.Name(b.rank), err))
		}
	}
	return nil
}

func (m *Mail) push(b *mailbox) error {
	for b.sending > 0 {
		done, err := b.queue[0].request.Test()
		if err != nil {
			return err
		}
		if !done {
			break
		}
		b.free = append(b.free, b.queue[0])
		b.queue = append(b.queue[:0], b.queue[1:]...)
		b.sending--
	}
	for b.sending < len(b.queue) && b.sending < atOnce {
		p := b.queue[b.sending]
		binary.LittleEndian.PutUint32(p.memory.Bytes, uint32(p.used))
		if err := m.processes.data.Isend(&p.request, p.memory.Bytes[:p.used], b.rank, m.tag); err != nil {
			return err
		}
		b.sending++
	}
	return nil
}

// Take has take called for the records that have come, those of each process in the order in which they were put, and
// reports whether there were some. Records are those of mail until take returns; take may call Put. After a failure of
// any process it returns that.
func (m *Mail) Take(take func(from int, record []byte) error) (some bool, err error) {
	if err := m.processes.Err(); err != nil {
		return false, err
	}
	for _, b := range m.peers {
		if b == nil || b.over {
			continue
		}
		came, err := m.came(b)
		if err != nil {
			return some, m.processes.Fail(fmt.Errorf("mpi: mail from %s: %w", m.processes.Name(b.rank), err))
		}
		if !came {
			continue
		}
		some = true
		if err := b.open(take); err != nil {
			return some, err
		}
		if err := m.next(b); err != nil {
			return some, m.processes.Fail(err)
		}
	}
	return some, nil
}

func (m *Mail) came(b *mailbox) (bool, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return b.receive.Test()
}

// open has each record of a parcel taken.
func (b *mailbox) open(take func(from int, record []byte) error) error {
	used := int(binary.LittleEndian.Uint32(b.in.Bytes))
	if used < parcelHead || used > parcelBytes {
		return fmt.Errorf("mpi: mail of %d bytes", used)
	}
	for rest := b.in.Bytes[parcelHead:used]; len(rest) > 0; {
		n := int(binary.LittleEndian.Uint32(rest))
		if rest = rest[recordHead:]; n > len(rest) {
			return fmt.Errorf("mpi: mail with a record of %d bytes where %d are left", n, len(rest))
		}
		if err := take(b.rank, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// next expects a parcel after one that was taken, unless that was the last.
func (m *Mail) next(b *mailbox) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if b.over = binary.LittleEndian.Uint32(b.in.Bytes[4:]) != 0; b.over {
		return nil
	}
	return m.expect(b)
}

func (m *Mail) expect(b *mailbox) error {
	return m.processes.data.Irecv(&b.receive, b.in.Bytes, b.rank, m.tag)
}

// End says to all processes that nothing more is put in this turn. It goes on with Take and Flush until IsOver.
func (m *Mail) End() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.ended {
		return nil
	}
	m.ended = true
	for _, b := range m.others() {
		p, err := b.room(0)
		if err != nil {
			return m.processes.Fail(err)
		}
		binary.LittleEndian.PutUint32(p.memory.Bytes[4:], 1)
	}
	return nil
}

// HasEnded reports whether all that a process has put in this turn was taken, and it puts no more.
func (m *Mail) HasEnded(from int) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.peers[from].over
}

// IsOver reports whether the turn is over for this process: all have ended it, and all that was put was sent.
func (m *Mail) IsOver() bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, b := range m.peers {
		if b != nil && (!b.over || len(b.queue) > 0) {
			return false
		}
	}
	return m.ended
}

// Close frees what it holds, but for what MPI may still use, which there is after a failure. Closing twice is no error.
func (m *Mail) Close() error {
	for _, b := range m.others() {
		if done, err := b.receive.Test(); done && err == nil {
			b.in.Free()
		}
		for _, p := range append(b.queue, b.free...) {
			if done, err := p.request.Test(); done && err == nil {
				p.memory.Free()
			}
		}
		b.queue, b.free, b.sending = nil, nil, 0
	}
	return nil
}

// Wire carries bytes of host memory between this process and another by MPI alone: what it takes bounds what messages
// between their devices take. One thread uses it.
type Wire struct {
	processes  *Processes
	other, tag int
	memory     *binding.Memory
	request    binding.Request
}

// NewWire makes one for so many bytes. The other process makes one too, with the same tag. Close frees it.
func (p *Processes) NewWire(bytes int64, other, tag int) (*Wire, error) {
	if other < 0 || other >= p.Size() || other == p.Rank {
		return nil, fmt.Errorf("mpi: bytes between ranks %d and %d of %d", p.Rank, other, p.Size())
	}
	m, err := binding.NewMemory(int(bytes))
	return &Wire{processes: p, other: other, tag: tag, memory: m}, err
}

// Send sends all bytes, and returns when MPI is done with them. Where it fails all processes are told.
func (w *Wire) Send() error {
	return w.carry(w.processes.data.Isend(&w.request, w.memory.Bytes, w.other, w.tag))
}

// Receive receives all bytes.
func (w *Wire) Receive() error {
	return w.carry(w.processes.data.Irecv(&w.request, w.memory.Bytes, w.other, w.tag))
}

// carry waits for a request that has begun, unless it could not.
func (w *Wire) carry(err error) error {
	p := w.processes
	if err == nil {
		err = w.request.Wait(p.failure.ctx, p.options.Limit)
	}
	if err != nil && p.Err() == nil {
		_ = p.Fail(err) // which has it too
	}
	return err
}

// Close frees the memory; after a failure, when MPI may still use it, it does not.
func (w *Wire) Close() error {
	if w.processes.Err() == nil {
		w.memory.Free()
	}
	return nil
}
