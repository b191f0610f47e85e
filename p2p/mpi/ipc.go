package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/halox/halox/streams"
)

// HostMessage is a message between two processes of one host.
type HostMessage struct {
	From, To int             // ranks of the processes
	Bytes    int64           // length
	Device   *streams.Device // of the end in this process; ignored if there is none
	Name     string          // describes the message and the other process, for errors

	// Get keeps the message in memory of the sender, where the receiver reads it. Default: the sender writes it into
	// memory of the receiver.
	Get bool
}

// owner returns the rank of the process with the memory of the message.
func (m *HostMessage) owner() int {
	if m.Get {
		return m.From
	}
	return m.To
}

// HostMessages are prepared messages between processes of one host. A message is written into memory of one of them,
// and a signal in each direction orders the streams: the message has been written, and it has been read.
type HostMessages struct {
	processes *Processes
	all       []HostMessage
	counts    *streams.SharedBytes         // counts of signals that this process records; its first line says that it is closed
	peers     map[int]*streams.SharedBytes // those of the other processes, by rank
	pools     []hostPool
	own       streams.Resources // what other processes open
	opened    streams.Resources // what belongs to other processes
	ends      []hostEnd
	signals   []*streams.SharedSignal // that this process waits for
	forget    func() bool             // ends the wait for a failure
	closed    bool
	dry       bool
}

// hostPool is the memory for all messages that a device of this process owns.
type hostPool struct {
	device *streams.Device
	memory *streams.Memory
	bytes  int64
	handle []byte
}

// hostEnd is an end of a message.
type hostEnd struct {
	group      *HostMessages
	sent, read *streams.SharedSignal
	span       streams.Span
	turns      int64
	pool       int // of the owner
	offset     int64
}

// hostExport is what a process tells the others about its ends, by message.
type hostExport struct {
	Counts string
	Pools  []poolExport
	Ends   map[int]endExport
}

type poolExport struct {
	Handle []byte
	Bytes  int64
}

type endExport struct {
	Pool   int
	Offset int64
	Signal []byte // sent by the sender, read by the receiver
}

const (
	countLine     = 64  // bytes of a count, which has a cache line
	hostAlignment = 256 // of a message in its pool
)

// NewHostMessages prepares messages. All processes call it with the same list, each with the devices of its own ends.
// If it fails on one process, it does on all. On devices of a dry run it only allocates, without the others.
func (p *Processes) NewHostMessages(ctx context.Context, all []HostMessage) (h *HostMessages, err error) {
	const what = "share memory between processes of a host"
	h = &HostMessages{processes: p, all: all, peers: map[int]*streams.SharedBytes{}, ends: make([]hostEnd, len(all))}
	err = p.sweepHost()
	h.layOut()
	if h.dry = h.isDry(); h.dry {
		return h, h.openDry()
	}
	var export hostExport
	if err == nil {
		export, err = h.export()
	}
	if err = p.Agree(ctx, what, err); err == nil {
		var exports []hostExport
		if exports, err = Gather(ctx, p, what, export); err == nil {
			err = p.Agree(ctx, what, h.open(exports))
		}
	}
	h.forget = context.AfterFunc(p.failure.ctx, h.release)
	p.lock.Lock()
	p.host = append(p.host, h)
	p.lock.Unlock()
	err = errors.Join(err, h.seal())
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// layOut places the messages that each device of this process owns.
func (h *HostMessages) layOut() {
	for i, m := range h.all {
		h.ends[i] = hostEnd{group: h, pool: -1}
		if m.owner() != h.processes.Rank {
			continue
		}
		at := slices.IndexFunc(h.pools, func(p hostPool) bool { return p.device == m.Device })
		if at < 0 {
			at = len(h.pools)
			h.pools = append(h.pools, hostPool{device: m.Device})
		}
		pool := &h.pools[at]
		h.ends[i].pool, h.ends[i].offset = at, pool.bytes
		pool.bytes += (m.Bytes + hostAlignment - 1) / hostAlignment * hostAlignment
	}
}

// local reports whether this process has an end of message i, and whether that sends.
func (h *HostMessages) local(i int) (sends, has bool) {
	rank := h.processes.Rank
	return h.all[i].From == rank, h.all[i].From == rank || h.all[i].To == rank
}

func (h *HostMessages) isDry() bool {
	for i, m := range h.all {
		if _, has := h.local(i); has {
			return m.Device.IsDry()
		}
	}
	return false
}

// openDry allocates the memory of a dry run.
func (h *HostMessages) openDry() error {
	if err := h.allocate(); err != nil {
		return errors.Join(err, h.own.Close())
	}
	for i, m := range h.all {
		if _, has := h.local(i); has && h.ends[i].pool < 0 {
			m, err := m.Device.OpenShared(nil, m.Bytes)
			if err != nil {
				return errors.Join(err, h.opened.Close(), h.own.Close())
			}
			h.opened.Add(m)
			h.ends[i].span = m.All()
		}
	}
	return nil
}

// allocate allocates the memory of the messages that this process owns.
func (h *HostMessages) allocate() (err error) {
	for i := range h.pools {
		pool := &h.pools[i]
		if pool.memory, pool.handle, err = pool.device.AllocShared(pool.bytes); err != nil {
			return err
		}
		h.own.Add(pool.memory)
	}
	for i := range h.ends {
		if e := &h.ends[i]; e.pool >= 0 {
			e.span = h.pools[e.pool].memory.Span(e.offset, h.all[i].Bytes)
		}
	}
	return nil
}

// export creates what other processes open.
func (h *HostMessages) export() (x hostExport, err error) {
	if err := h.allocate(); err != nil {
		return x, err
	}
	for _, pool := range h.pools {
		x.Pools = append(x.Pools, poolExport{pool.handle, pool.bytes})
	}
	if h.counts, err = streams.NewSharedBytes(h.countBytes()); err != nil {
		return x, err
	}
	x.Counts, x.Ends = h.counts.Name, map[int]endExport{}
	for i, m := range h.all {
		sends, has := h.local(i)
		if !has {
			continue
		}
		s, handle, err := m.Device.NewSharedSignal(h.count(h.counts, i), m.Name)
		if err != nil {
			return x, err
		}
		h.own.Add(s)
		e := &h.ends[i]
		if sends {
			e.sent = s
		} else {
			e.read = s
		}
		x.Ends[i] = endExport{e.pool, e.offset, handle}
	}
	return x, nil
}

func (h *HostMessages) countBytes() int64 { return int64(1+len(h.all)) * countLine }

// count returns the count of message i in the counts of a process.
func (h *HostMessages) count(of *streams.SharedBytes, i int) []byte {
	return of.Bytes[(1+i)*countLine:][:8]
}

// open opens what the other ends of the messages of this process have exported.
func (h *HostMessages) open(exports []hostExport) (err error) {
	type mapping struct {
		rank, pool int
		device     *streams.Device
	}
	mapped := map[mapping]*streams.Memory{}
	for i, m := range h.all {
		sends, has := h.local(i)
		if !has {
			continue
		}
		other := m.From + m.To - h.processes.Rank
		if h.peers[other] == nil {
			if h.peers[other], err = streams.OpenSharedBytes(exports[other].Counts, h.countBytes()); err != nil {
				return err
			}
		}
		its := exports[other].Ends[i]
		s, err := m.Device.OpenSharedSignal(its.Signal, h.count(h.peers[other], i), m.Name)
		if err != nil {
			return err
		}
		h.opened.Add(s)
		h.signals = append(h.signals, s)
		e := &h.ends[i]
		if sends {
			e.read = s
		} else {
			e.sent = s
		}
		if e.pool >= 0 {
			continue
		}
		key := mapping{other, its.Pool, m.Device}
		if mapped[key] == nil {
			pool := exports[other].Pools[its.Pool]
			if mapped[key], err = m.Device.OpenShared(pool.Handle, pool.Bytes); err != nil {
				return err
			}
			h.opened.Add(mapped[key])
		}
		e.span = mapped[key].Span(its.Offset, m.Bytes)
	}
	return nil
}

// seal removes the names of files that all processes have opened.
func (h *HostMessages) seal() (err error) {
	for _, pool := range h.pools {
		if pool.memory != nil {
			err = errors.Join(err, pool.memory.Seal())
		}
	}
	if h.counts != nil {
		err = errors.Join(err, h.counts.Unlink())
	}
	return err
}

// release ends all waits for other processes.
func (h *HostMessages) release() {
	for _, s := range h.signals {
		s.Release()
	}
}

// Span returns the memory of message i, which its sender writes and its receiver reads: memory of one of their devices,
// mapped for the other. It is empty if this process has no end.
func (h *HostMessages) Span(i int) streams.Span { return h.ends[i].span }

// Sender returns the end of message i that sends, and Receiver the one that receives.
func (h *HostMessages) Sender(i int) *HostSender { return (*HostSender)(&h.ends[i]) }

// Receiver returns the end of message i that receives.
func (h *HostMessages) Receiver(i int) *HostReceiver { return (*HostReceiver)(&h.ends[i]) }

// HostSender is the sending end of a message, see Sender. Only one thread uses it.
type HostSender hostEnd

// Ready makes the stream wait until the last message has been read: the span may then be overwritten.
func (s *HostSender) Ready(group *streams.WorkerGroup, stream *streams.Stream) error {
	if s.turns == 0 {
		return nil
	}
	return s.group.follow(s.read, group, stream, s.turns)
}

// Send sends the content of the span after all work queued on the stream. Ready must be called before the span is
// written again.
func (s *HostSender) Send(stream *streams.Stream) error {
	s.turns++
	return s.sent.Record(stream)
}

// HostReceiver is the receiving end of a message, see Receiver. Only one thread uses it.
type HostReceiver hostEnd

// Expect begins to receive one message.
func (r *HostReceiver) Expect(*streams.Stream) { r.turns++ }

// Receive makes the stream wait until the expected message is in the span. The host waits until the sender has queued
// it.
func (r *HostReceiver) Receive(group *streams.WorkerGroup, stream *streams.Stream) error {
	return r.group.follow(r.sent, group, stream, r.turns)
}

// Done marks the work queued on the stream as the last to read the message.
func (r *HostReceiver) Done(stream *streams.Stream) error { return r.read.Record(stream) }

// follow makes a stream wait for the n-th record of another process. The host waits for it within the limit, and not
// after a failure of any process.
func (h *HostMessages) follow(s *streams.SharedSignal, group *streams.WorkerGroup, on *streams.Stream, n int64) error {
	err := s.Await(group, n, h.processes.options.Limit)
	if first := h.processes.Err(); first != nil {
		return fmt.Errorf("mpi: %s: %w", s.Name(), first)
	}
	if err == nil {
		return s.Follow(on)
	}
	if !errors.Is(err, streams.ErrStopped) {
		err = h.processes.Fail(fmt.Errorf("mpi: network ipc: %w", err))
	}
	return err
}

// Close ends the messages of this process, none of which may be in use. The memory is freed once the other processes
// have closed theirs, at the latest by Disconnect. Closing twice is allowed.
func (h *HostMessages) Close() error {
	if h.dry {
		return errors.Join(h.opened.Close(), h.own.Close())
	}
	if h.closed {
		return nil
	}
	h.closed = true
	h.forget()
	if h.processes.Err() != nil {
		return nil // streams may still use the memory, which the devices free after their streams
	}
	err := h.opened.Close()
	h.signals = nil
	if h.counts != nil {
		h.flag(h.counts).Store(1)
	}
	return errors.Join(err, h.processes.sweepHost())
}

// flag says whether a process has closed its ends.
func (h *HostMessages) flag(of *streams.SharedBytes) *atomic.Int64 {
	return &streams.View[atomic.Int64](of.Bytes[:8])[0]
}

// unused reports whether all processes have closed their ends.
func (h *HostMessages) unused() bool {
	for _, counts := range h.peers {
		if h.flag(counts).Load() == 0 {
			return false
		}
	}
	return h.closed
}

// free frees what other processes had opened.
func (h *HostMessages) free() error {
	err := h.own.Close()
	for _, counts := range h.peers {
		err = errors.Join(err, counts.Close())
	}
	if h.counts != nil {
		err = errors.Join(err, h.counts.Close())
	}
	return err
}

// probeBytes is the length of the messages of TryIPC.
const probeBytes = 64 << 10

// TryIPC sends messages between the devices of processes of one host over network ipc, and compares the bytes that
// arrive. The devices are those of this process. All processes call it: if it fails on one, it does on all.
func (p *Processes) TryIPC(ctx context.Context, devices []*streams.Device) (err error) {
	if len(devices) > 0 && devices[0].HostMemory {
		devices = devices[:1]
	}
	counts, err := Gather(ctx, p, "count devices", len(devices))
	if err != nil {
		return err
	}
	var all []HostMessage
	for from := range p.Size() {
		for to := range p.Size() {
			if from == to || p.Nodes[from] != p.Nodes[to] {
				continue
			}
			for i := range counts[from] {
				for j := range counts[to] {
					m := HostMessage{From: from, To: to, Bytes: probeBytes, Name: fmt.Sprintf(
						"a trial of network ipc from device %d of %s to device %d of %s", i, p.Name(from), j, p.Name(to))}
					switch p.Rank {
					case from:
						m.Device = devices[i]
					case to:
						m.Device = devices[j]
					}
					all = append(all, m)
				}
			}
		}
	}
	if len(all) == 0 {
		return errors.New("mpi: network ipc: no two processes are on one host")
	}
	h, err := p.NewHostMessages(ctx, all)
	if err != nil {
		return err
	}
	err = h.prove()
	return p.Agree(ctx, "try network ipc", errors.Join(err, h.Close()))
}

// prove sends all messages twice.
func (h *HostMessages) prove() (err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	type place struct {
		host, device *streams.Memory
		at           *streams.Stream
	}
	places := map[*streams.Device]place{}
	for i, m := range h.all {
		if _, has := h.local(i); has && places[m.Device].at == nil {
			places[m.Device] = place{open.AllocPinned(m.Device, probeBytes), open.Alloc(m.Device, probeBytes),
				open.NewStream(m.Device, streams.Normal)}
		}
	}
	if err := open.Err(); err != nil {
		return err
	}
	group := streams.NewWorkerGroup(1<<10, h.processes.options.Limit)
	content := make([]byte, probeBytes)
	for round := range 2 {
		for _, sends := range []bool{true, false} {
			for i, m := range h.all {
				if s, has := h.local(i); !has || s != sends {
					continue
				}
				rand.NewChaCha8([32]byte{byte(round), byte(i), byte(i >> 8), byte(i >> 16)}).Read(content)
				at := places[m.Device]
				if sends {
					copy(at.host.Bytes(), content)
					err = errors.Join(at.at.Copy(at.device.All(), at.host.All()), h.Sender(i).Ready(group, at.at),
						at.at.Copy(h.Span(i), at.device.All()), h.Sender(i).Send(at.at))
				} else {
					h.Receiver(i).Expect(at.at)
					err = errors.Join(h.Receiver(i).Receive(group, at.at), at.at.Copy(at.host.All(), h.Span(i)),
						h.Receiver(i).Done(at.at))
				}
				if err = errors.Join(err, at.at.Sync(h.processes.options.Limit)); err != nil {
					return err
				}
				if !sends && !bytes.Equal(at.host.Bytes(), content) {
					return fmt.Errorf("mpi: %s: the bytes that arrive differ", m.Name)
				}
			}
		}
	}
	return nil
}
