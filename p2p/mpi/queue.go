package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	binding "github.com/halox/halox/internal/mpi"
)

// MaxRecord is the largest size of a record of a Queue in bytes.
const MaxRecord = batchBytes - batchHead - recordHead

const (
	batchBytes = 64 << 10
	batchHead  = 8 // two words: the number of bytes used, and whether the batch is the last of a turn
	recordHead = 4 // length of the record
	maxSending = 4 // batches to one process that MPI sends at a time
)

// Queue transfers records of bytes between all processes during a turn, which all begin and end. Records from one
// process to another arrive in order. Records queued while MPI is busy are sent together. Several goroutines may
// call Put; only one calls Begin, Take, End and Close.
type Queue struct {
	processes *Processes
	tag       int
	lock      sync.Mutex
	peers     []*peerQueue // by rank; nil for this process
	others    []*peerQueue // all but this process
	ended     bool         // no more records in this turn
}

// peerQueue holds the batches to and from one other process.
type peerQueue struct {
	rank    int
	in      *binding.Memory
	receive binding.Request
	over    bool     // the last batch of the turn has arrived
	out     []*batch // in order; MPI sends the first ones
	sending int      // number of batches that MPI is sending
	free    []*batch
}

// batch is an MPI message of consecutive records.
type batch struct {
	memory  *binding.Memory
	used    int
	request binding.Request
}

// NewQueue creates a queue between all processes. All must call it.
func (p *Processes) NewQueue() (q *Queue, err error) {
	q = &Queue{processes: p, peers: make([]*peerQueue, p.Size()), ended: true}
	if q.tag, err = p.Tags(1); err != nil {
		return nil, err
	}
	for rank := range q.peers {
		if rank == p.Rank {
			continue
		}
		o := &peerQueue{rank: rank, over: true}
		if o.in, err = binding.NewMemory(batchBytes); err != nil {
			return nil, errors.Join(err, q.Close())
		}
		q.peers[rank], q.others = o, append(q.others, o)
	}
	return q, nil
}

// Begin begins a turn. The previous turn must be over on all processes.
func (q *Queue) Begin() error {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.ended = false
	for _, o := range q.others {
		o.over = false
		if err := q.expect(o); err != nil {
			return q.fail("from", o, err)
		}
	}
	return nil
}

// fail reports an error to all processes.
func (q *Queue) fail(direction string, o *peerQueue, err error) error {
	return q.processes.Fail(fmt.Errorf("mpi: records %s %s: %w", direction, q.processes.Name(o.rank), err))
}

// Put queues a record for another process: a head followed by a body, both of which it copies. After End it has no
// effect. The record is sent by the next Flush.
func (q *Queue) Put(to int, head, body []byte) error {
	n := len(head) + len(body)
	if n > MaxRecord {
		return fmt.Errorf("mpi: record: must have at most %d bytes, got %d", MaxRecord, n)
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.ended {
		return nil
	}
	b, err := q.peers[to].room(recordHead + n)
	if err != nil {
		return q.processes.Fail(err)
	}
	binary.LittleEndian.PutUint32(b.memory.Bytes[b.used:], uint32(n))
	b.used += recordHead
	b.used += copy(b.memory.Bytes[b.used:], head)
	b.used += copy(b.memory.Bytes[b.used:], body)
	return nil
}

// room returns a batch that MPI is not sending, with space for the given bytes.
func (p *peerQueue) room(bytes int) (*batch, error) {
	if n := len(p.out); n > p.sending && p.out[n-1].used+bytes <= batchBytes {
		return p.out[n-1], nil
	}
	var b *batch
	if n := len(p.free); n > 0 {
		b, p.free = p.free[n-1], p.free[:n-1]
	} else {
		memory, err := binding.NewMemory(batchBytes)
		if err != nil {
			return nil, err
		}
		b = &batch{memory: memory}
	}
	b.used = batchHead
	b.setLast(false)
	p.out = append(p.out, b)
	return b, nil
}

// setLast marks the batch as the last of the turn, or not.
func (b *batch) setLast(last bool) {
	b.memory.Bytes[4] = 0
	if last {
		b.memory.Bytes[4] = 1
	}
}

// IsFull reports whether so much waits to be sent to a process that callers of Put should wait if they can.
func (q *Queue) IsFull(to int) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	return len(q.peers[to].out) >= 2*maxSending
}

// Flush sends queued records, unless MPI is busy. It must be called repeatedly.
func (q *Queue) Flush() error {
	q.lock.Lock()
	defer q.lock.Unlock()
	for _, o := range q.others {
		if err := q.push(o); err != nil {
			return q.fail("to", o, err)
		}
	}
	return nil
}

func (q *Queue) push(o *peerQueue) error {
	for o.sending > 0 {
		done, err := o.out[0].request.Test()
		if err != nil {
			return err
		}
		if !done {
			break
		}
		o.free = append(o.free, o.out[0])
		o.out = append(o.out[:0], o.out[1:]...)
		o.sending--
	}
	for o.sending < min(len(o.out), maxSending) {
		b := o.out[o.sending]
		binary.LittleEndian.PutUint32(b.memory.Bytes, uint32(b.used))
		if err := q.processes.data.Isend(&b.request, b.memory.Bytes[:b.used], o.rank, q.tag); err != nil {
			return err
		}
		o.sending++
	}
	return nil
}

// Take calls take for each record that has arrived, those of each process in order, and reports whether there were
// any. A record is valid until take returns; take may call Put. After a failure of any process Take returns its
// error.
func (q *Queue) Take(take func(from int, record []byte) error) (some bool, err error) {
	if err := q.processes.Err(); err != nil {
		return false, err
	}
	for _, o := range q.others {
		arrived, err := q.arrived(o)
		if err != nil {
			return some, q.fail("from", o, err)
		}
		if !arrived {
			continue
		}
		some = true
		if err := o.each(take); err != nil {
			return some, err
		}
		if err := q.next(o); err != nil {
			return some, q.processes.Fail(err)
		}
	}
	return some, nil
}

// arrived reports whether a batch of this turn has arrived and was not taken.
func (q *Queue) arrived(o *peerQueue) (bool, error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if o.over {
		return false, nil
	}
	return o.receive.Test()
}

// each calls take for each record of the batch that has arrived.
func (p *peerQueue) each(take func(from int, record []byte) error) error {
	used := int(binary.LittleEndian.Uint32(p.in.Bytes))
	if used < batchHead || used > batchBytes {
		return fmt.Errorf("mpi: batch: length must be within the batch, got %d bytes", used)
	}
	for rest := p.in.Bytes[batchHead:used]; len(rest) > 0; {
		n := int(binary.LittleEndian.Uint32(rest))
		if rest = rest[recordHead:]; n > len(rest) {
			return fmt.Errorf("mpi: record: must have at most %d bytes, got %d", len(rest), n)
		}
		if err := take(p.rank, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// next receives the batch after one that was taken, unless that was the last.
func (q *Queue) next(o *peerQueue) error {
	q.lock.Lock()
	defer q.lock.Unlock()
	if o.over = o.in.Bytes[4] != 0; o.over {
		return nil
	}
	return q.expect(o)
}

func (q *Queue) expect(o *peerQueue) error {
	return q.processes.data.Irecv(&o.receive, o.in.Bytes, o.rank, q.tag)
}

// End tells all processes that this one puts no more records in this turn. Take and Flush must be called until
// IsOver.
func (q *Queue) End() error {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.ended {
		return nil
	}
	q.ended = true
	for _, o := range q.others {
		b, err := o.room(0)
		if err != nil {
			return q.processes.Fail(err)
		}
		b.setLast(true)
	}
	return nil
}

// HasEnded reports whether all records of a process in this turn were taken, and it puts no more.
func (q *Queue) HasEnded(from int) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.peers[from].over
}

// IsOver reports whether the turn is over for this process: all have ended it, and all records were sent.
func (q *Queue) IsOver() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	for _, o := range q.others {
		if !o.over || len(o.out) > 0 {
			return false
		}
	}
	return q.ended
}

// Close frees the memory of the queue, except for memory that MPI may still use after a failure. Closing twice is
// allowed.
func (q *Queue) Close() error {
	for _, o := range q.others {
		if done, err := o.receive.Test(); done && err == nil {
			o.in.Free()
		}
		for _, b := range append(o.out, o.free...) {
			if done, err := b.request.Test(); done && err == nil {
				b.memory.Free()
			}
		}
		o.out, o.free, o.sending = nil, nil, 0
	}
	return nil
}

// Wire transfers bytes of host memory between this process and another by MPI. Its speed bounds that of messages
// between their devices. Only one thread uses it.
type Wire struct {
	processes  *Processes
	other, tag int
	memory     *binding.Memory
	request    binding.Request
}

// NewWire creates a wire for messages of the given bytes. The other process must create one too, with the same
// tag. Close frees it.
func (p *Processes) NewWire(bytes int64, other, tag int) (*Wire, error) {
	if other < 0 || other >= p.Size() || other == p.Rank {
		return nil, fmt.Errorf("mpi: wire: rank must be another one below %d, got %d on rank %d",
			p.Size(), other, p.Rank)
	}
	m, err := binding.NewMemory(int(bytes))
	return &Wire{processes: p, other: other, tag: tag, memory: m}, err
}

// Send sends all bytes, and returns when MPI no longer uses them. An error is reported to all processes.
func (w *Wire) Send() error {
	return w.carry(w.processes.data.Isend(&w.request, w.memory.Bytes, w.other, w.tag))
}

// Receive receives all bytes.
func (w *Wire) Receive() error {
	return w.carry(w.processes.data.Irecv(&w.request, w.memory.Bytes, w.other, w.tag))
}

// carry waits for a request, if it has begun.
func (w *Wire) carry(err error) error {
	p := w.processes
	if err == nil {
		err = w.request.Wait(p.failure.ctx, p.options.Limit)
	}
	if err != nil && p.Err() == nil {
		_ = p.Fail(err) // which keeps it too
	}
	return err
}

// Close frees the memory, unless MPI may still use it after a failure.
func (w *Wire) Close() error {
	if w.processes.Err() == nil {
		w.memory.Free()
	}
	return nil
}
