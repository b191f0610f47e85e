package streams

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Backend names a kind of device.
type Backend string

// The backends.
const (
	CUDA Backend = "cuda"
	Host Backend = "host"
)

// Info describes a device that may be opened.
type Info struct {
	Backend Backend // its name, to be printed and recorded
	Traits
	ID       int    // ordinal on its platform
	Name     string // as the vendor says it
	Memory   int64  // bytes; 0 if unknown
	PCIBusID string // "0000:3b:00.0"; empty for host devices
	Arch     string // "sm_90"; empty for host devices
	Cores    int    // multiprocessors of a GPU, cores of a host device
	Shared   int64  // bytes of shared memory that a thread block may have; 0 for host devices
}

// Priority orders the streams of one device among each other.
type Priority int

// The priorities. Work on an Urgent stream starts before work on a Normal one.
const (
	Normal Priority = iota
	Urgent
)

// Device is an open device. Its methods may be called from any goroutine.
type Device struct {
	Info
	driver driver
	dead   atomic.Pointer[Error]
	grace  time.Duration // how long Close waits for the streams
	mu     sync.Mutex
	open   map[io.Closer]struct{} // what Close has to close
	peers  map[*Device]bool       // those that d may reach
	closed bool
	held   Held                 // what is allocated
	most   Held                 // the most of each since Peak was called
	tape   atomic.Pointer[tape] // nil unless the device is traced
}

// newDevice wraps a driver.
func newDevice(info Info, d driver) *Device {
	return &Device{Info: info, driver: d, grace: 10 * time.Second, open: map[io.Closer]struct{}{}, peers: map[*Device]bool{}}
}

// String names the device: "cuda 0", "host 3".
func (d *Device) String() string { return fmt.Sprintf("%s %d", d.Backend, d.ID) }

// Err returns the error that the device died of, or nil while it lives.
func (d *Device) Err() error { return d.alive() }

// Alloc returns bytes of device memory, at least RowAlignment aligned. Its
// content is undefined. The error is ErrOutOfMemory where that is why.
func (d *Device) Alloc(bytes int64) (*Memory, error) {
	return d.allocate("allocate device memory", bytes, driver.alloc)
}

// AllocPinned returns bytes of page-locked host memory, which every device of
// the platform can copy from and to. Its content is undefined. The error is ErrOutOfMemory
// where that is why.
func (d *Device) AllocPinned(bytes int64) (*Memory, error) {
	return d.allocate("allocate pinned host memory", bytes, driver.pinned)
}

func (d *Device) allocate(what string, bytes int64, alloc func(driver, int64) (*Memory, error)) (*Memory, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if bytes < 1 {
		return nil, d.fail(fmt.Errorf("the size must be positive"), "%s: %d bytes", what, bytes)
	}
	m, err := alloc(d.driver, bytes)
	if err != nil {
		return nil, d.fail(err, "%s: %d bytes", what, bytes)
	}
	m.device, m.size = d, bytes
	d.count(m, 1)
	return kept(d, m, m.free)
}

// MemoryInfo returns the free and the total device memory in bytes. Of host devices that is what they and
// pinned memory may take of the host together, zeros where nobody knows: see HostMemoryInfo.
func (d *Device) MemoryInfo() (free, total int64, err error) {
	if err := d.usable(); err != nil {
		return 0, 0, err
	}
	free, total, err = d.driver.usage()
	return free, total, d.fail(err, "ask for the free memory")
}

// NewStream makes a stream.
func (d *Device) NewStream(p Priority) (*Stream, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	q, err := d.driver.queue(p)
	if err != nil {
		return nil, d.fail(err, "make a stream")
	}
	return kept(d, &Stream{device: d, queue: q, track: d.newTrack()}, q.close)
}

// NewEvent makes an event. An event that was never recorded counts as done.
func (d *Device) NewEvent() (*Event, error) { return d.newEvent(false) }

// NewTimedEvent makes an event that knows when it was done, for Event.Since.
func (d *Device) NewTimedEvent() (*Event, error) { return d.newEvent(true) }

func (d *Device) newEvent(timed bool) (*Event, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	m, err := d.driver.marker(timed)
	if err != nil {
		return nil, d.fail(err, "make an event")
	}
	return kept(d, &Event{device: d, marker: m}, m.close)
}

// CanAccess reports whether the two devices can copy to each other directly.
// A yes is the driver's word, not a proof: see p2p.Probe.
func (d *Device) CanAccess(peer *Device) (bool, error) {
	if peer == nil {
		return false, errNoDevice
	}
	if d.Backend != peer.Backend {
		return false, nil
	}
	if d == peer {
		return true, nil
	}
	if err := d.alive(); err != nil {
		return false, err
	}
	ok, err := d.driver.canAccess(peer)
	return ok, d.fail(err, "ask for access to %v", peer)
}

// EnablePeer lets d reach the memory of peer. Calling it again does nothing.
func (d *Device) EnablePeer(peer *Device) error {
	if peer == nil {
		return errNoDevice
	}
	if d == peer {
		return nil
	}
	if err := d.alive(); err != nil {
		return err
	}
	if d.Backend != peer.Backend {
		return d.fail(errors.New("they are of different backends"), "enable access to %v", peer)
	}
	if err := d.driver.enablePeer(peer); err != nil {
		return d.fail(err, "enable access to %v", peer)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[peer] = true
	return nil
}

// Reaches reports whether kernels of d may store into the memory: its own, pinned
// memory, or that of a peer to which EnablePeer gave access. Devices that share the memory
// of the host reach each other always.
func (d *Device) Reaches(m *Memory) bool {
	if m == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.within(d) || !m.pinned && (d.peers[m.device] || d.HostMemory && m.device.Backend == d.Backend)
}

// Close frees all that was made on the device and then the device. Work that
// is still queued is waited for, not longer than 10 s. Of a dead device nothing
// can be freed; its death is an error here only if it was not one before.
// Closing twice is no error.
func (d *Device) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	errs := []error{d.closeStreams()}
	for _, c := range d.all() {
		errs = append(errs, c.Close())
	}
	if errors.Is(d.Err(), errHangs) {
		return errors.Join(errs...) // the driver would wait for it for ever
	}
	if err := d.driver.close(); d.Err() == nil {
		errs = append(errs, d.fail(err, "close it"))
	}
	return errors.Join(errs...)
}

// closeStreams closes all streams of the device, and then the graphs.
func (d *Device) closeStreams() error {
	var errs []error
	made := d.all()
	for _, c := range made {
		if s, ok := c.(*Stream); ok {
			errs = append(errs, s.Close())
		}
	}
	for _, c := range made {
		if g, ok := c.(*Graph); ok {
			errs = append(errs, g.Close())
		}
	}
	return errors.Join(errs...)
}

// all returns what was made on the device and is open.
func (d *Device) all() []io.Closer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.open))
}

// keep remembers c for Close.
func (d *Device) keep(c io.Closer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.fail(errClosed, "use the device")
	}
	d.open[c] = struct{}{}
	return nil
}

// kept keeps what was made on the device, or frees it where the device was closed meanwhile.
func kept[T io.Closer](d *Device, made T, free func() error) (T, error) {
	if err := d.keep(made); err != nil {
		var none T
		return none, errors.Join(err, free())
	}
	return made, nil
}

// drop forgets c and reports whether it was open.
func (d *Device) drop(c io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.open[c]
	delete(d.open, c)
	return ok
}

// discard closes c by free. It does nothing if c is closed, or if the device is
// dead: then nothing can be freed.
func (d *Device) discard(c io.Closer, free func() error, doing string, args ...any) error {
	if !d.drop(c) || d.alive() != nil {
		return nil
	}
	return d.fail(free(), doing, args...)
}

// usable returns an error if there is no device, or it is closed or dead.
func (d *Device) usable() error {
	if d == nil {
		return errNoDevice
	}
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return d.fail(errClosed, "use the device")
	}
	return d.alive()
}

// alive returns the error that the device died of, and nil, not a nil *Error,
// while it lives.
func (d *Device) alive() error {
	if e := d.dead.Load(); e != nil {
		return e
	}
	return nil
}
