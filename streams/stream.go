package streams

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Stream is a queue of work on one device.
type Stream struct {
	device   *Device
	queue    queue
	track    *track // nil unless the device is traced
	captured bool   // queued work becomes part of a graph
	closed   atomic.Bool
}

// usable returns an error if the stream is nil or closed, or its device dead.
func (s *Stream) usable() error {
	if s == nil {
		return errNoStream
	}
	if s.closed.Load() {
		return s.device.fail(errClosed, "use a stream")
	}
	return s.device.alive()
}

// Device returns the device of the stream.
func (s *Stream) Device() *Device { return s.device }

// Copy queues a copy of src to dst, which must have the same length and not overlap. Either may be memory of this
// device, of a peer, or pinned host memory.
func (s *Stream) Copy(dst, src Span) error { return s.CopyAs(CopyWork, dst, src) }

// CopyAs is like Copy, but records another kind of work in traces, for a copy that is not part of an exchange.
func (s *Stream) CopyAs(work Work, dst, src Span) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := cmp.Or(dst.Check(), src.Check()); err != nil {
		return s.device.fail(err, "copy to %v from %v", dst, src)
	}
	if dst.Length != src.Length {
		return s.device.fail(errors.New("spans must have the same length"), "copy to %v from %v", dst, src)
	}
	if dst.Overlaps(src) {
		return s.device.fail(errors.New("spans must not overlap"), "copy to %v from %v", dst, src)
	}
	if dst.Length == 0 {
		return nil
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.copy(dst, src); err != nil {
		return s.device.fail(err, "copy to %v from %v", dst, src)
	}
	return s.after(copied(work, dst.Memory, src.Memory, dst.Length))
}

// Launch queues a kernel of this device.
func (s *Stream) Launch(k *Kernel) error {
	if err := s.usable(); err != nil {
		return err
	}
	if k == nil {
		return s.device.fail(errors.New("the kernel must not be nil"), "launch")
	}
	if k.device != s.device {
		return s.device.fail(fmt.Errorf("the kernel belongs to device %v", k.device), "launch %s", k.name)
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.launch(k.launcher); err != nil {
		return s.device.fail(err, "launch %s", k.name)
	}
	return s.after(Operation{Name: k.name, Work: k.work})
}

// Record queues the event: it is done once all work queued before it is done.
func (s *Stream) Record(e *Event) error {
	if err := s.usable(); err != nil {
		return err
	}
	if e == nil {
		return s.device.fail(errors.New("the event must not be nil"), "record an event")
	}
	if e.device != s.device {
		return s.device.fail(fmt.Errorf("the event belongs to device %v", e.device), "record an event")
	}
	if err := s.queue.record(e.marker); err != nil {
		return s.device.fail(err, "record an event")
	}
	return nil
}

// Wait makes all work queued later wait for the last Record of e called before this call. The event may belong to
// another device of the same platform. The host does not wait.
func (s *Stream) Wait(e *Event) error {
	if err := s.usable(); err != nil {
		return err
	}
	if e == nil {
		return s.device.fail(errors.New("the event must not be nil"), "wait for an event")
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.wait(e.marker); err != nil {
		return s.device.fail(err, "wait for an event of device %v", e.device)
	}
	return s.after(Operation{Name: "wait", Work: WaitWork, With: e.device})
}

// Sync makes the host wait until the stream has completed all queued work, for at most limit, and returns the
// error of the stream.
func (s *Stream) Sync(limit time.Duration) error {
	if s == nil {
		return errNoStream
	}
	if s.closed.Load() {
		return s.device.fail(errClosed, "wait for a stream")
	}
	done, err := s.await(limit)
	if err == nil && !done {
		err = notDone(limit)
	}
	return s.device.fail(err, "wait for a stream")
}

// await waits until the stream is done, for at most limit.
func (s *Stream) await(limit time.Duration) (done bool, err error) {
	wait := paceOf(syncThreads).Begin()
	for {
		if err := s.device.alive(); err != nil {
			return false, err
		}
		if done, err := s.queue.idle(); done || err != nil {
			return done, err
		}
		if wait.Pause() > limit {
			return false, nil
		}
	}
}

func notDone(limit time.Duration) error { return fmt.Errorf("not done after %v", limit) }

// Close waits for the stream, for at most 10 s, and frees it. A stream that takes longer makes its device
// unusable, since freeing anything there would wait for it. Closing twice is allowed.
func (s *Stream) Close() error {
	if s.captured {
		return s.device.fail(errCaptured, "close a stream")
	}
	if !s.device.drop(s) {
		return nil
	}
	s.closed.Store(true)
	if s.device.alive() != nil {
		s.queue.close()
		return nil
	}
	done, err := s.await(s.device.grace)
	if err == nil && !done {
		err = fmt.Errorf("%w: %w", errHangs, notDone(s.device.grace))
	}
	if gone := s.queue.close(); err == nil {
		err = gone
	}
	return s.device.fail(err, "close a stream")
}

// Event is a point in the work of a stream.
type Event struct {
	device *Device
	marker marker
}

// Device returns the device of the event.
func (e *Event) Device() *Device { return e.device }

// Done reports whether the work before the last Record is done.
func (e *Event) Done() (bool, error) {
	if e == nil {
		return false, errNoEvent
	}
	if err := e.device.alive(); err != nil {
		return false, err
	}
	ok, err := e.marker.done()
	return ok, e.device.fail(err, "query an event")
}

// Sync makes the host wait until the event is done, for at most limit.
func (e *Event) Sync(limit time.Duration) error {
	wait := paceOf(syncThreads).Begin()
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		if wait.Pause() > limit {
			return e.device.fail(notDone(limit), "wait for an event")
		}
	}
}

// Since returns the time on the device between two events. Both must be timed events of the device, recorded and
// done.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if e == nil || start == nil {
		return 0, errNoEvent
	}
	if start.device != e.device {
		return 0, e.device.fail(fmt.Errorf("the start event belongs to device %v", start.device),
			"query the time between events")
	}
	if err := e.device.alive(); err != nil {
		return 0, err
	}
	t, err := e.marker.since(start.marker)
	return t, e.device.fail(err, "query the time between events")
}

// syncThreads is the number of threads that may wait for devices at once: one per device of a large host.
const syncThreads = 7

// Close frees the event. Closing twice is allowed.
func (e *Event) Close() error {
	return e.device.discard(e, e.marker.close, "free an event")
}

// KernelSpec describes a launch, in both forms. A device uses the form of its backend, see Traits.GoKernels, and
// ignores the other.
type KernelSpec struct {
	Name string // for errors and traces
	Work Work   // for traces; default OtherWork
	Uses []Span // memory it accesses: all of this device, or pinned
	// Reaches is memory of peers that it stores into, over links on which EnablePeer was called.
	Reaches []Span

	// Run is the Go form. It runs in the goroutine of the stream.
	Run func()
	// RunWith is the Go form for a kernel with an Argument. It gets the argument as it was when the launch was queued
	// or captured.
	RunWith func(argument []byte)

	// Function is the CUDA form.
	Function Function
	Grid     [3]int // blocks per axis
	Block    [3]int // threads per axis
	Shared   int    // bytes of dynamic shared memory; default 0
	Argument []byte // the only parameter, a struct passed by value

	// Early lets a GPU of compute capability 9.0 or later start the kernel while the work queued before it ends,
	// which saves 1 to 2 us. Every thread of the kernel must first wait (griddepcontrol.wait). Default false.
	Early bool

	// Cooperative makes all thread blocks run at the same time, as needed by blocks that wait for each other.
	// NewKernel rejects a grid with more blocks than the GPU can hold at once. A cooperative launch is never early.
	// Default false.
	Cooperative bool
}

// Kernel is a prepared launch: it can be queued repeatedly with the same arguments, and queuing it does not
// allocate.
type Kernel struct {
	device   *Device
	name     string
	work     Work
	launcher launcher
}

// NewKernel prepares a launch. It rejects memory of other devices in Uses: only copies access memory of two
// devices.
func (d *Device) NewKernel(spec KernelSpec) (*Kernel, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	for _, u := range spec.Uses {
		if err := u.Check(); err != nil {
			return nil, d.fail(fmt.Errorf("must use valid memory, got %v: %w", u, err), "prepare %s", spec.Name)
		}
		if !u.Memory.within(d) {
			return nil, d.fail(fmt.Errorf("must use its own or pinned memory, got %v", u), "prepare %s", spec.Name)
		}
	}
	for _, r := range spec.Reaches {
		if err := r.Check(); err != nil {
			return nil, d.fail(fmt.Errorf("must reach valid memory, got %v: %w", r, err), "prepare %s", spec.Name)
		}
		if !d.Reaches(r.Memory) {
			return nil, d.fail(fmt.Errorf("peer access is not enabled to %v", r), "prepare %s", spec.Name)
		}
	}
	l, err := d.driver.kernel(&spec)
	if err != nil {
		return nil, d.fail(err, "prepare %s", spec.Name)
	}
	k := &Kernel{device: d, name: spec.Name, work: spec.Work, launcher: l}
	if k.work == "" {
		k.work = OtherWork
	}
	return kept(d, k, l.close)
}

// Argument returns the argument of a launch, which may be changed between launches by the thread that queues them:
// a launch takes a copy. It is nil for kernels with KernelSpec.Run.
func (k *Kernel) Argument() []byte {
	if a, ok := k.launcher.(argued); ok {
		return a.argument()
	}
	return nil
}

// Name returns the name given in the spec.
func (k *Kernel) Name() string { return k.name }

// Close frees the kernel. Closing twice is allowed.
func (k *Kernel) Close() error {
	if !k.device.drop(k) {
		return nil
	}
	return k.device.fail(k.launcher.close(), "free %s", k.name)
}

// Module is compiled code loaded on one GPU.
type Module struct {
	device *Device
	module module
}

// Function is a kernel of a module.
type Function interface {
	// Usage returns the resources of a thread and a block of the kernel.
	Usage() (Usage, error)
	// AtOnce returns how many blocks with the given number of threads, and bytes of dynamic shared memory, one
	// multiprocessor can hold at once.
	AtOnce(threads, shared int) (int, error)
}

// Usage holds the resources of a GPU kernel.
type Usage struct {
	Registers int // per thread
	Local     int // bytes per thread, including spills
	Shared    int // bytes per block, static
	Threads   int // maximum per block
}

// LoadModule loads a compiled image, a cubin or PTX, on a GPU.
func (d *Device) LoadModule(image []byte) (*Module, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	m, err := d.driver.module(image)
	if err != nil {
		return nil, d.fail(err, "load a module of %d bytes", len(image))
	}
	return kept(d, &Module{device: d, module: m}, m.close)
}

// Function returns the kernel of the given name.
func (m *Module) Function(name string) (Function, error) {
	if err := m.device.alive(); err != nil {
		return nil, err
	}
	f, err := m.module.function(name)
	return f, m.device.fail(err, "find kernel %s", name)
}

// Close unloads the module. Closing twice is allowed.
func (m *Module) Close() error {
	return m.device.discard(m, m.module.close, "unload a module")
}
