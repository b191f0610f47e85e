package streams

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/guard"
)

// Backend is the name of a backend.
type Backend string

// The backends.
const (
	CUDA Backend = "cuda"
	Host Backend = "host"
)

// Info describes a device that can be opened.
type Info struct {
	Backend Backend // name of the backend, for output and records
	Traits
	ID       int    // ordinal on its platform
	Name     string // as reported by the vendor
	Memory   int64  // bytes; 0 if unknown
	PCIBusID string // "0000:3b:00.0"; empty for CPU devices
	UUID     string // "GPU-..." or "MIG-...", as CUDA_VISIBLE_DEVICES takes it; empty for CPU devices
	Arch     string // "sm_90"; empty for CPU devices
	Cores    int    // multiprocessors of a GPU, CPU cores of a CPU device
	Shared   int64  // bytes of shared memory available to a thread block; 0 for CPU devices
}

// Priority orders the streams of one device.
type Priority int

// The priorities. Work on an Urgent stream starts before work on a Normal one.
const (
	Normal Priority = iota
	Urgent
)

// Device is an open device. Its methods may be called from any goroutine. Close returns an error while the device
// is held, see Hold.
type Device struct {
	Info
	driver driver
	dead   atomic.Pointer[Error]
	grace  time.Duration // how long Close waits for the streams
	guard  guard.Guard   // see Hold
	mu     sync.Mutex
	open   map[io.Closer]struct{} // objects that Close has to close
	peers  map[*Device]bool       // peers that d can access
	held   Held                   // allocated
	most   Held                   // maximum since the last call of Peak
	tape   atomic.Pointer[tape]   // nil unless the device is traced
}

// newDevice wraps a driver.
func newDevice(info Info, d driver) *Device {
	return &Device{Info: info, driver: d, grace: 10 * time.Second, open: map[io.Closer]struct{}{},
		peers: map[*Device]bool{}}
}

// String returns the backend and the id: "cuda 0", "host 3".
func (d *Device) String() string { return fmt.Sprintf("%s %d", d.Backend, d.ID) }

// Err returns the error that made the device unusable, or nil.
func (d *Device) Err() error { return d.alive() }

// Alloc allocates device memory of the given size in bytes, aligned to at least RowAlignment. Its content is
// undefined. The error is ErrOutOfMemory if there is too little memory.
func (d *Device) Alloc(bytes int64) (*Memory, error) {
	return d.allocate("allocate device memory", bytes, driver.alloc)
}

// AllocPinned allocates page-locked host memory of the given size in bytes, which all devices of the platform can
// copy from and to. Its content is undefined. The error is ErrOutOfMemory if there is too little memory.
func (d *Device) AllocPinned(bytes int64) (*Memory, error) {
	return d.allocate("allocate pinned host memory", bytes, driver.pinned)
}

func (d *Device) allocate(what string, bytes int64, alloc func(driver, int64) (*Memory, error)) (*Memory, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if bytes < 1 {
		return nil, d.fail(fmt.Errorf("size must be at least 1"), "%s: %d bytes", what, bytes)
	}
	m, err := alloc(d.driver, bytes)
	if err != nil {
		return nil, d.fail(err, "%s: %d bytes", what, bytes)
	}
	m.device, m.size = d, bytes
	d.count(m, 1)
	return kept(d, m, m.free)
}

// MemoryInfo returns the free and the total device memory in bytes. For CPU devices these are the host memory
// that devices and pinned memory share, or zeros if unknown: see HostMemoryInfo.
func (d *Device) MemoryInfo() (free, total int64, err error) {
	if err := d.usable(); err != nil {
		return 0, 0, err
	}
	free, total, err = d.driver.usage()
	return free, total, d.fail(err, "query free memory")
}

// NewStream creates a stream.
func (d *Device) NewStream(p Priority) (*Stream, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	q, err := d.driver.queue(p)
	if err != nil {
		return nil, d.fail(err, "create a stream")
	}
	return kept(d, &Stream{device: d, queue: q, track: d.newTrack()}, q.close)
}

// NewEvent creates an event. An event that was never recorded counts as done.
func (d *Device) NewEvent() (*Event, error) { return d.newEvent(false) }

// NewTimedEvent creates an event with a time, for Event.Since.
func (d *Device) NewTimedEvent() (*Event, error) { return d.newEvent(true) }

func (d *Device) newEvent(timed bool) (*Event, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	m, err := d.driver.marker(timed)
	if err != nil {
		return nil, d.fail(err, "create an event")
	}
	return kept(d, &Event{device: d, marker: m}, m.close)
}

// CanAccess reports whether the driver allows the two devices to copy to each other directly. That does not
// guarantee correct copies: see p2p.Probe.
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
	return ok, d.fail(err, "query access to %v", peer)
}

// EnablePeer gives d access to the memory of peer. Calling it again has no effect.
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
		return d.fail(errors.New("devices must be of the same backend"), "enable access to %v", peer)
	}
	if err := d.driver.enablePeer(peer); err != nil {
		return d.fail(err, "enable access to %v", peer)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[peer] = true
	return nil
}

// Reaches reports whether kernels of d may store into the memory: its own memory, pinned memory, or that of a peer
// to which EnablePeer gave access. Devices that share host memory always reach each other.
func (d *Device) Reaches(m *Memory) bool {
	if m == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.within(d) || !m.pinned && (d.peers[m.device] || d.HostMemory && m.device.Backend == d.Backend)
}

// Close frees everything created on the device, and then the device. It waits at most 10 s for queued work.
// Nothing can be freed on a dead device; its failure is returned only if it was not returned before. Closing twice
// is allowed. If the device is held, see Hold, Close returns an error and the device stays open.
func (d *Device) Close() error { return CloseAll([]*Device{d}) }

// CloseAll closes all devices concurrently. It closes the streams of all devices before the memory of any, since
// copies use memory of two devices. Nil devices are skipped. If one device is held, all stay open.
func CloseAll(devices []*Device) error {
	if err := Idle(devices); err != nil {
		return err
	}
	var closing []*Device
	var held error
	for _, d := range devices {
		if d == nil {
			continue
		}
		switch err := d.guard.Close(); {
		case err == nil:
			closing = append(closing, d)
		case errors.Is(err, guard.ErrBusy): // held in the meantime
			held = errors.Join(held, d.fail(err, whileHeld))
		}
	}
	return errors.Join(held, eachDevice(closing, (*Device).closeStreams), eachDevice(closing, (*Device).free))
}

// CloseStreams closes all streams of the devices, which stay open. It waits at most 10 s for queued work.
func CloseStreams(devices []*Device) error { return eachDevice(devices, (*Device).closeStreams) }

// eachDevice calls do for all devices, concurrently.
func eachDevice(devices []*Device, do func(d *Device) error) error {
	errs := make([]error, len(devices))
	var group sync.WaitGroup
	for i, d := range devices {
		group.Go(func() { errs[i] = do(d) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// free frees everything created on the device, whose streams are closed, and then the device.
func (d *Device) free() error {
	errs := []error{closeOf[io.Closer](d.all())}
	if errors.Is(d.Err(), errHangs) {
		return errors.Join(errs...) // the driver would wait without a limit
	}
	if err := d.driver.close(); d.Err() == nil {
		errs = append(errs, d.fail(err, "close"))
	}
	return errors.Join(errs...)
}

// Hold prevents devices from being closed until Release: Close and CloseAll return an error. Nil devices are
// skipped. If a device is closed, Hold returns an error and holds none.
func Hold(devices []*Device) error {
	for i, d := range devices {
		if d == nil {
			continue
		}
		if err := d.guard.Hold(guard.Open); err != nil {
			Release(devices[:i])
			return d.fail(err, "use the device")
		}
	}
	return nil
}

// Release ends a Hold.
func Release(devices []*Device) {
	for _, d := range devices {
		if d != nil {
			d.guard.Release(guard.Open)
		}
	}
}

// Idle returns an error if a device is held, see Hold, and cannot be closed.
func Idle(devices []*Device) error {
	for _, d := range devices {
		if d != nil && d.guard.Busy() {
			return d.fail(guard.ErrBusy, whileHeld)
		}
	}
	return nil
}

const whileHeld = "close during a run, or while something is created or copied on it"

// closeStreams closes all streams of the device, and then its graphs.
func (d *Device) closeStreams() error {
	made := d.all()
	return errors.Join(closeOf[*Stream](made), closeOf[*Graph](made))
}

// closeOf closes the objects of type T.
func closeOf[T io.Closer](all []io.Closer) (err error) {
	for _, c := range all {
		if c, ok := c.(T); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// all returns the open objects of the device.
func (d *Device) all() []io.Closer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.open))
}

// keep registers c for Close.
func (d *Device) keep(c io.Closer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.guard.Closed() {
		return d.fail(errClosed, "use the device")
	}
	d.open[c] = struct{}{}
	return nil
}

// kept registers an object of the device, or frees it if the device was closed in the meantime.
func kept[T io.Closer](d *Device, made T, free func() error) (T, error) {
	if err := d.keep(made); err != nil {
		var none T
		return none, errors.Join(err, free())
	}
	return made, nil
}

// drop unregisters c and reports whether it was open.
func (d *Device) drop(c io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.open[c]
	delete(d.open, c)
	return ok
}

// discard closes c by calling free. It does nothing if c is closed, or if the device is dead and nothing can be
// freed.
func (d *Device) discard(c io.Closer, free func() error, doing string, args ...any) error {
	if !d.drop(c) || d.alive() != nil {
		return nil
	}
	return d.fail(free(), doing, args...)
}

// usable returns an error if the device is nil, closed or dead.
func (d *Device) usable() error {
	if d == nil {
		return errNoDevice
	}
	if d.guard.Closed() {
		return d.fail(errClosed, "use the device")
	}
	return d.alive()
}

// alive returns the error that made the device unusable, or a nil error (not a nil *Error).
func (d *Device) alive() error {
	if e := d.dead.Load(); e != nil {
		return e
	}
	return nil
}

// Held is memory allocated on a device, in bytes.
type Held struct {
	Memory int64 // device memory
	Pinned int64 // pinned host memory
}

// Held returns the memory that is allocated on the device.
func (d *Device) Held() Held {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// Peak returns the maximum of each field of Held since the last call of Peak.
func (d *Device) Peak() (most Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most, d.most = d.most, d.held
	return most
}

// count counts an allocated block, or a freed one if sign is -1.
func (d *Device) count(m *Memory, sign int64) {
	if m.borrowed {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.pinned {
		d.held.Pinned += sign * m.size
	} else {
		d.held.Memory += sign * m.size
	}
	d.most = Held{max(d.most.Memory, d.held.Memory), max(d.most.Pinned, d.held.Pinned)}
}

// Demand is an amount of memory needed on a device.
type Demand struct {
	Device *Device // device that needs the memory
	Held
}

// Fit returns an error, which is ErrOutOfMemory, if the demands exceed the free memory. It lists every device with
// too little memory, and the host, whose memory CPU devices and pinned memory share. Demands on devices of a
// DryRun always fit. Other programs may allocate memory before the caller does.
func Fit(all []Demand) error {
	wanted := map[*Device]int64{} // device memory
	var order []*Device
	var host *Device // any device that needs host memory
	var ofHost int64
	for _, n := range all {
		d := n.Device
		if d.IsDry() {
			continue
		}
		if n.Memory < 0 || n.Pinned < 0 {
			return d.fail(fmt.Errorf("%w: need more than 2^63 bytes", ErrOutOfMemory), "check memory")
		}
		if d.HostMemory {
			n.Memory, n.Pinned = 0, plus(n.Memory, n.Pinned)
		}
		if n.Pinned > 0 {
			host, ofHost = d, plus(ofHost, n.Pinned)
		}
		if !slices.Contains(order, d) {
			order = append(order, d)
		}
		wanted[d] = plus(wanted[d], n.Memory)
	}
	var errs []error
	for _, d := range order {
		if wanted[d] > 0 {
			free, total, err := d.MemoryInfo()
			errs = append(errs, cmp.Or(err, d.fail(tooFew("", wanted[d], free, total, "free"), "check memory")))
		}
	}
	if host != nil {
		m, err := host.HostMemoryInfo()
		if err == nil {
			if err = tooFew(" on the host", ofHost, m.Free, m.Total, "available: "+m.Source); err != nil {
				err = fmt.Errorf("streams: %w", err)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tooFew returns an error if free is less than needed and total is known.
func tooFew(where string, needed, free, total int64, are string) error {
	if total == 0 || needed <= free {
		return nil
	}
	needs, has := sizes(needed, free)
	return fmt.Errorf("%w%s: need %s, but only %s of %s are %s", ErrOutOfMemory, where, needs, has, Size(total), are)
}

// plus returns the sum of two sizes, saturating at math.MaxInt64.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// HostInfo is the host memory shared by its devices and pinned memory, in bytes; zeros if unknown.
type HostInfo struct {
	Free   int64  // bytes that can be allocated
	Total  int64  // bytes of the host, or of its limit
	Source string // what limits Free: the memory that the system reports as available, or a limit of the process
}

// HostMemoryInfo returns the host memory that can be allocated.
func (d *Device) HostMemoryInfo() (HostInfo, error) {
	if err := d.usable(); err != nil {
		return HostInfo{}, err
	}
	m, err := d.driver.host().free()
	return HostInfo{m.Free, m.Total, m.Source}, d.fail(err, "query host memory")
}

// Size formats a number of bytes, such as "3 MiB".
func Size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	n, i := float64(bytes), 0
	for n >= 1024 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	text := strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
	return text + " " + units[i]
}

// sizes formats both numbers precisely enough that they differ.
func sizes(needed, free int64) (string, string) {
	if n, f := Size(needed), Size(free); n != f {
		return n, f
	}
	return fmt.Sprintf("%d B", needed), fmt.Sprintf("%d B", free)
}

// ErrNoDriver means that this machine has no CUDA driver, or no GPU.
var ErrNoDriver = cuda.ErrNoDriver

// ErrNoLibrary is the ErrNoDriver of a driver library that cannot be opened, rather than one that finds no GPU.
var ErrNoLibrary = cuda.ErrNoLibrary

// ErrNotStarted means that the CUDA driver does not start, or does not list the GPUs. One broken GPU can be the cause.
var ErrNotStarted = errors.New("the CUDA driver does not start")

// ErrUnsuited means that a valid box has a layout that no device can copy in a single operation, see CopyBox. The
// caller must use another method.
var ErrUnsuited = errors.New("not possible as a single copy")

// ErrOutOfMemory means that a device, or the host, has less free memory than needed.
var ErrOutOfMemory = errors.New("out of memory")

var (
	errNoStream = errors.New("streams: the stream is nil")
	errNoDevice = errors.New("streams: the device is nil")
	errNoEvent  = errors.New("streams: the event is nil")
	errNoGroup  = errors.New("streams: the worker group is nil")

	errClosed = guard.ErrClosed
	errHangs  = errors.New("hangs") // a stream that did not finish before it was closed
)

// Error is a failed call on a device.
type Error struct {
	Device string // as returned by Device.String
	Doing  string // operation
	Fatal  bool   // the device is dead
	Err    error  // error of the driver; of type *cuda.Error for CUDA
}

// Error returns the device, the operation and the error of the driver. A panic, which other devices see too, comes
// first.
func (e *Error) Error() string {
	if errors.Is(e.Err, ErrPanicked) {
		return fmt.Sprintf("%v; device %s: %s", e.Err, e.Device, e.Doing)
	}
	return fmt.Sprintf("device %s: %s: %v", e.Device, e.Doing, e.Err)
}

// Unwrap returns the error of the driver.
func (e *Error) Unwrap() error { return e.Err }

// fail returns nil for a nil err, and otherwise adds the device and the operation. A fatal error makes the device
// unusable; errors on a dead device are replaced by its first fatal error.
func (d *Device) fail(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	e := &Error{Device: d.String(), Doing: fmt.Sprintf(doing, args...), Err: err, Fatal: errors.Is(err, errHangs) ||
		d.driver.fatal(err)}
	if e.Fatal {
		d.dead.CompareAndSwap(nil, e)
	}
	if first := d.dead.Load(); first != nil {
		return first
	}
	return e
}
