package streams

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Processes of one host share device memory and the order of work on it. One process allocates memory, or creates a
// signal, and passes its handle to another, which opens it. The other process must close what it has opened before the
// first closes the original.

// errUnshared means that devices of the backend cannot share memory with other processes.
var errUnshared = errors.New("memory cannot be shared with other processes here")

// sharer is a driver whose memory other processes of the host can open.
type sharer interface {
	share(bytes int64) (m *Memory, handle []byte, err error)
	open(handle []byte, bytes int64) (*Memory, error)
}

// markerSharer is a sharer whose streams wait for markers of other processes. Without it, the host waits until a stream
// of another process has reached a record.
type markerSharer interface {
	shareMarker() (m marker, handle []byte, err error)
	openMarker(handle []byte) (marker, error)
}

// AllocShared is Alloc for memory that other processes of the host can open by the handle.
func (d *Device) AllocShared(bytes int64) (m *Memory, handle []byte, err error) {
	m, err = d.allocate("allocate shared memory", bytes, func(drv driver, bytes int64) (m *Memory, err error) {
		s, ok := drv.(sharer)
		if !ok {
			return nil, errUnshared
		}
		m, handle, err = s.share(bytes)
		return m, err
	})
	return m, handle, err
}

// OpenShared maps memory that another process of the host has allocated, as memory of d: its kernels and copies access
// it. Close ends the mapping. It does not count in Held.
func (d *Device) OpenShared(handle []byte, bytes int64) (*Memory, error) {
	return d.allocate("open memory of another process", bytes, func(drv driver, bytes int64) (*Memory, error) {
		s, ok := drv.(sharer)
		if !ok {
			return nil, errUnshared
		}
		m, err := s.open(handle, bytes)
		if m != nil {
			m.borrowed = true
		}
		return m, err
	})
}

// Seal ends the time in which other processes can open memory of AllocShared.
func (m *Memory) Seal() error {
	if s, ok := m.handle.(*SharedBytes); ok {
		return s.Unlink()
	}
	return nil
}

// SharedSignal is a Signal between streams of two processes of a host. Each process has its own: one records, the
// other waits. A record must be waited for before the next one.
type SharedSignal struct {
	event   *Event  // nil if the host waits for the record itself
	reach   *Kernel // counts a record that the stream has reached; nil with an event
	records Counter
}

// NewSharedSignal creates the recording end, with its count in 8 bytes of memory of both processes. The handle is for
// OpenSharedSignal. The name identifies the worker that records it.
func (d *Device) NewSharedSignal(count []byte, name string) (s *SharedSignal, handle []byte, err error) {
	s = &SharedSignal{records: Counter{Name: name, shared: &View[atomic.Int64](count)[0]}}
	if err := d.usable(); err != nil {
		return nil, nil, err
	}
	drv, ok := d.driver.(markerSharer)
	if !ok {
		records := s.records.shared
		s.reach, err = d.NewKernel(KernelSpec{Name: "signal", Work: WaitWork, Run: func() {
			ordered.Add(1)
			records.Add(1)
		}})
		return s, nil, err
	}
	m, handle, err := drv.shareMarker()
	if err != nil {
		return nil, nil, d.fail(err, "create an event for other processes")
	}
	s.event, err = kept(d, &Event{device: d, marker: m}, m.close)
	return s, handle, err
}

// OpenSharedSignal opens the waiting end of the signal of another process.
func (d *Device) OpenSharedSignal(handle, count []byte, name string) (s *SharedSignal, err error) {
	s = &SharedSignal{records: Counter{Name: name, shared: &View[atomic.Int64](count)[0]}}
	if err := d.usable(); err != nil {
		return nil, err
	}
	drv, ok := d.driver.(markerSharer)
	if !ok {
		return s, nil
	}
	m, err := drv.openMarker(handle)
	if err != nil {
		return nil, d.fail(err, "open an event of another process")
	}
	s.event, err = kept(d, &Event{device: d, marker: m}, m.close)
	return s, err
}

// Record queues a record on a stream, and publishes it.
func (s *SharedSignal) Record(on *Stream) error {
	if s.event == nil {
		return on.Launch(s.reach)
	}
	if err := on.Record(s.event); err != nil {
		return err
	}
	s.records.shared.Add(1)
	return nil
}

// Await waits on the host until the other process has queued the n-th record, counted from 1, for at most limit. On CPU
// devices it waits until the other stream has reached the record.
func (s *SharedSignal) Await(group *WorkerGroup, n int64, limit time.Duration) error {
	err := group.await(&s.records, n, limit)
	ordered.Load()
	return err
}

// ordered orders a record in this process before all later waits, for the race detector: it does not know that another
// process has waited for the record before it made its own.
var ordered atomic.Int64

// Follow makes a stream wait for the record that Await has waited for.
func (s *SharedSignal) Follow(on *Stream) error {
	if s.event == nil {
		return nil
	}
	return on.Wait(s.event)
}

// Name returns the name given to the signal.
func (s *SharedSignal) Name() string { return s.records.Name }

// Release ends all waits on the host, as if everything had been recorded: the other process is lost.
func (s *SharedSignal) Release() { s.records.Set(1<<63 - 1) }

// Close frees this end.
func (s *SharedSignal) Close() error {
	switch {
	case s.event != nil:
		return s.event.Close()
	case s.reach != nil:
		return s.reach.Close()
	}
	return nil
}

// SharedBytes is host memory in a file that several processes map. Its content is zero at first.
type SharedBytes struct {
	Bytes []byte // the memory
	Name  string // of the file, for OpenSharedBytes
}

// NewSharedBytes makes a file of the given size in memory or, if the host has no such folder, in the folder for
// temporary files. Unlink removes its name once all others have opened it.
func NewSharedBytes(bytes int64) (*SharedBytes, error) { return newSharedBytes(bytes) }

// OpenSharedBytes maps a file of another process of this host.
func OpenSharedBytes(name string, bytes int64) (*SharedBytes, error) {
	return openSharedBytes(name, bytes)
}

// share returns memory in a file, whose name is the handle.
func (h *hostDriver) share(bytes int64) (*Memory, []byte, error) {
	if err := h.ledger.take(bytes); err != nil {
		return nil, nil, err
	}
	b, err := newSharedBytes(bytes)
	if err != nil {
		h.ledger.give(bytes)
		return nil, nil, err
	}
	return &Memory{bytes: b.Bytes, handle: b}, []byte(b.Name), nil
}

func (h *hostDriver) open(handle []byte, bytes int64) (*Memory, error) {
	b, err := openSharedBytes(string(handle), bytes)
	if err != nil {
		return nil, err
	}
	return &Memory{bytes: b.Bytes, handle: b}, nil
}

// share in a dry run is alloc, and open takes no memory.
func (d *dryDriver) share(bytes int64) (*Memory, []byte, error) {
	m, err := d.alloc(bytes)
	return m, nil, err
}

func (d *dryDriver) open(_ []byte, bytes int64) (*Memory, error) { return d.alloc(bytes) }

var errShortFile = fmt.Errorf("%w: the file of another process has another size", errUnshared)
