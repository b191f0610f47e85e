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

// Device is an open device. Its methods may be called from any goroutine. Close returns an error during a run on the
// device, see Hold.
type Device struct {
	Info
	driver driver
	dead   atomic.Pointer[Error]
	grace  time.Duration // how long Close waits for the streams
	guard  guard.Guard   // see Hold
	mu     sync.Mutex
	open   map[io.Closer]struct{} // what Close has to close
	peers  map[*Device]bool       // those that d may reach
	held   Held                   // what is allocated
	most   Held                   // the most of each since Peak was called
	tape   atomic.Pointer[tape]   // nil unless the device is traced
}

// newDevice wraps a driver.
func newDevice(info Info, d driver) *Device {
	return &Device{Info: info, driver: d, grace: 10 * time.Second, open: map[io.Closer]struct{}{},
		peers: map[*Device]bool{}}
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
// pinned memory may take of the host together, zeros where that is not known: see HostMemoryInfo.
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
// Close does nothing for a closed device. For a device that is held, see Hold, it returns an error and the device stays
// open.
func (d *Device) Close() error { return CloseAll([]*Device{d}) }

// CloseAll closes all devices, side by side, but the streams of all before the memory of any:
// copies cross. A device that is nil is left out. If one is held, all stay open.
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
		case errors.Is(err, guard.ErrBusy): // it was held since
			held = errors.Join(held, d.fail(err, whileHeld))
		}
	}
	return errors.Join(held, eachDevice(closing, (*Device).closeStreams), eachDevice(closing, (*Device).free))
}

// eachDevice calls do for all devices, side by side.
func eachDevice(devices []*Device, do func(d *Device) error) error {
	errs := make([]error, len(devices))
	var group sync.WaitGroup
	for i, d := range devices {
		group.Go(func() { errs[i] = do(d) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// free frees what was made on the device, whose streams are closed, and then the device.
func (d *Device) free() error {
	errs := []error{closeOf[io.Closer](d.all())}
	if errors.Is(d.Err(), errHangs) {
		return errors.Join(errs...) // the driver would wait for it without a limit
	}
	if err := d.driver.close(); d.Err() == nil {
		errs = append(errs, d.fail(err, "close it"))
	}
	return errors.Join(errs...)
}

// Hold keeps devices open until Release: Close and CloseAll return an error until then. Devices that are nil are left
// out. It is an error, and none is held, if one of them is closed.
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

// Release ends what Hold began.
func Release(devices []*Device) {
	for _, d := range devices {
		if d != nil {
			d.guard.Release(guard.Open)
		}
	}
}

// Idle returns an error if a device is held, see Hold: it cannot be closed now.
func Idle(devices []*Device) error {
	for _, d := range devices {
		if d != nil && d.guard.Busy() {
			return d.fail(guard.ErrBusy, whileHeld)
		}
	}
	return nil
}

const whileHeld = "close it during a run, or while something is made or copied on it"

// closeStreams closes all streams of the device, and then the graphs.
func (d *Device) closeStreams() error {
	made := d.all()
	return errors.Join(closeOf[*Stream](made), closeOf[*Graph](made))
}

// closeOf closes those of a type.
func closeOf[T io.Closer](all []io.Closer) (err error) {
	for _, c := range all {
		if c, ok := c.(T); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
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
	if d.guard.Closed() {
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
	if d.guard.Closed() {
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

// Held is memory that was allocated on a device, in bytes.
type Held struct {
	Memory int64 // of the device
	Pinned int64 // of the host
}

// Held returns what is allocated on the device.
func (d *Device) Held() Held {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// Peak returns the most of each that was allocated since the call before.
func (d *Device) Peak() (most Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most, d.most = d.most, d.held
	return most
}

// count counts a block that was allocated, or with a sign of -1 freed.
func (d *Device) count(m *Memory, sign int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.pinned {
		d.held.Pinned += sign * m.size
	} else {
		d.held.Memory += sign * m.size
	}
	d.most = Held{max(d.most.Memory, d.held.Memory), max(d.most.Pinned, d.held.Pinned)}
}

// Demand is memory that somebody wants of a device.
type Demand struct {
	Device *Device
	Held
}

// Fit returns an error, which is ErrOutOfMemory, with the numbers for every device that has too little free
// memory for all that is wanted of it, and one for the host, whose memory CPU devices and pinned memory
// share. What is wanted of devices of a DryRun always fits. Others may allocate before the caller does.
func Fit(all []Demand) error {
	wanted := map[*Device]int64{} // of memory of its own
	var order []*Device
	var host *Device // any that wants memory of the host
	var ofHost int64
	for _, n := range all {
		d := n.Device
		if d.IsDry() {
			continue
		}
		if n.Memory < 0 || n.Pinned < 0 {
			return d.fail(fmt.Errorf("%w: more than 2^63 bytes are needed", ErrOutOfMemory), "make room")
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
			errs = append(errs, cmp.Or(err, d.fail(tooFew("", wanted[d], free, total, "free"), "make room")))
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

// tooFew returns an error if fewer bytes are free than needed, and it is known how many there are.
func tooFew(where string, needed, free, total int64, are string) error {
	if total == 0 || needed <= free {
		return nil
	}
	needs, has := sizes(needed, free)
	return fmt.Errorf("%w%s: %s are needed, and %s of %s are %s", ErrOutOfMemory, where, needs, has, Size(total), are)
}

// plus returns the sum of two sizes, or the greatest number there is.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// HostInfo is the host's memory as its devices and their pinned memory share it, in bytes; zeros where it is
// not known.
type HostInfo struct {
	Free, Total int64
	Source      string // what Free is: what the system calls available, or what a limit leaves
}

// HostMemoryInfo returns what of the host's memory may be allocated.
func (d *Device) HostMemoryInfo() (HostInfo, error) {
	if err := d.usable(); err != nil {
		return HostInfo{}, err
	}
	m, err := d.driver.host().free()
	return HostInfo{m.Free, m.Total, m.Source}, d.fail(err, "ask for the memory of the host")
}

// Size writes a number of bytes as "3 MiB".
func Size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	n, i := float64(bytes), 0
	for n >= 1024 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	text := strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
	return text + " " + units[i]
}

// sizes writes what is needed and what there is less of, so that they differ.
func sizes(needed, free int64) (string, string) {
	if n, f := Size(needed), Size(free); n != f {
		return n, f
	}
	return fmt.Sprintf("%d B", needed), fmt.Sprintf("%d B", free)
}

// ErrNoDriver says that this machine has no CUDA driver, or no GPU.
var ErrNoDriver = cuda.ErrNoDriver

// ErrNoLibrary is the ErrNoDriver of a driver library that cannot be opened, unlike one that
// shows no GPU.
var ErrNoLibrary = cuda.ErrNoLibrary

// ErrUnsuited says that a box lies as it should, but no device copies one that
// lies so in a single copy: the caller has to go another way. See CopyBox.
var ErrUnsuited = errors.New("no single copy does it")

// ErrOutOfMemory says that a device, or the host, has less memory free than is needed.
var ErrOutOfMemory = errors.New("out of memory")

var (
	errNoStream = errors.New("streams: the stream is nil")
	errNoDevice = errors.New("streams: the device is nil")
	errNoEvent  = errors.New("streams: the event is nil")
	errNoGroup  = errors.New("streams: the worker group is nil")

	errClosed = guard.ErrClosed
	errHangs  = errors.New("it hangs") // a stream that was to be closed and did not end
)

// Error is a failed call on a device.
type Error struct {
	Device string // as Device.String gives it
	Doing  string // what was being done
	Fatal  bool   // the device is dead
	Err    error  // what the driver said; of type *cuda.Error behind CUDA
}

// Error names the device, what was being done and what the driver said.
func (e *Error) Error() string { return fmt.Sprintf("device %s: %s: %v", e.Device, e.Doing, e.Err) }

// Unwrap returns what the driver said.
func (e *Error) Unwrap() error { return e.Err }

// fail returns nil for a nil err, and else says on which device and at what it
// failed. An error that a device does not recover from kills the device; what
// fails on a dead device fails of what the device died of.
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
