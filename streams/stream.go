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
	captured bool   // what is queued becomes part of a graph
	closed   atomic.Bool
}

// usable returns an error if there is no stream, it is closed, or its device dead.
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

// Copy queues a copy of src to dst, which have the same length and do not overlap. Either may be
// memory of this device, of a peer, or pinned host memory.
func (s *Stream) Copy(dst, src Span) error { return s.CopyAs(CopyWork, dst, src) }

// CopyAs is Copy that says what kind of work the copy is, for one that is not part of an
// exchange.
func (s *Stream) CopyAs(work Work, dst, src Span) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := cmp.Or(dst.Check(), src.Check()); err != nil {
		return s.device.fail(err, "copy to %v from %v", dst, src)
	}
	if dst.Length != src.Length {
		return s.device.fail(errors.New("the spans differ in length"), "copy to %v from %v", dst, src)
	}
	if dst.Overlaps(src) {
		return s.device.fail(errors.New("the spans overlap"), "copy to %v from %v", dst, src)
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
		return s.device.fail(errors.New("the kernel is nil"), "launch")
	}
	if k.device != s.device {
		return s.device.fail(fmt.Errorf("the kernel is one of device %v", k.device), "launch %s", k.name)
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.launch(k.launcher); err != nil {
		return s.device.fail(err, "launch %s", k.name)
	}
	return s.after(Operation{Name: k.name, Work: k.work})
}

// Record queues the event: it is done once all that was queued before it is.
func (s *Stream) Record(e *Event) error {
	if err := s.usable(); err != nil {
		return err
	}
	if e == nil {
		return s.device.fail(errors.New("the event is nil"), "record an event")
	}
	if e.device != s.device {
		return s.device.fail(fmt.Errorf("the event is one of device %v", e.device), "record an event")
	}
	if err := s.queue.record(e.marker); err != nil {
		return s.device.fail(err, "record an event")
	}
	return nil
}

// Wait makes all that is queued later wait for the last Record of e that was
// called before this call. The event may be one of another device of the same
// platform. The host does not wait.
func (s *Stream) Wait(e *Event) error {
	if err := s.usable(); err != nil {
		return err
	}
	if e == nil {
		return s.device.fail(errors.New("the event is nil"), "wait for an event")
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.queue.wait(e.marker); err != nil {
		return s.device.fail(err, "wait for an event of device %v", e.device)
	}
	return s.after(Operation{Name: "wait", Work: WaitWork, With: e.device})
}

// Sync makes the host wait until the stream has done all that was queued, for
// at most limit, and returns what went wrong on it.
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

// await waits until the stream is done, and no longer than limit.
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

// Close waits for the stream, not longer than 10 s, and frees it. A stream that
// takes longer kills its device, since to free anything there would wait for
// it. Closing twice is no error.
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
	return ok, e.device.fail(err, "ask for an event")
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

// Since returns the time on the device from one event to another, both timed ones of the
// device, recorded and done.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if e == nil || start == nil {
		return 0, errNoEvent
	}
	if start.device != e.device {
		return 0, e.device.fail(fmt.Errorf("the other is one of device %v", start.device),
			"ask for the time between events")
	}
	if err := e.device.alive(); err != nil {
		return 0, err
	}
	t, err := e.marker.since(start.marker)
	return t, e.device.fail(err, "ask for the time between events")
}

// syncThreads is how many threads may wait for devices at once: one a device
// of a large host.
const syncThreads = 7

// Close frees the event. Closing twice is no error.
func (e *Event) Close() error {
	return e.device.discard(e, e.marker.close, "free an event")
}

// KernelSpec is all that a launch needs, in both forms. A device takes the one that its
// backend runs, see Traits.GoKernels, and leaves the other alone.
type KernelSpec struct {
	Name string // for errors and traces
	Work Work   // for traces; none is OtherWork
	Uses []Span // the memory it touches: all of this device, or pinned
	// Memory of peers that it stores into, over links on which EnablePeer was
	// called.
	Reaches []Span

	// The Go form: what to run, in the stream's own goroutine.
	Run func()
	// The same for a kernel with an Argument, which gets it as it was when the
	// launch was queued or captured.
	RunWith func(argument []byte)

	// The CUDA form: the function, its geometry, the dynamic shared memory in bytes,
	// and its only parameter, a struct passed by value.
	Function    Function
	Grid, Block [3]int
	Shared      int
	Argument    []byte

	// Early lets a GPU that can, of compute capability 9.0 or later, start the kernel
	// while what is queued before it still ends, which saves a microsecond or two. All its
	// threads wait themselves, before all else (griddepcontrol.wait). It is for kernels
	// that do.
	Early bool

	// Cooperative has all thread blocks of a GPU run at the same time, as those must that wait for each
	// other. NewKernel rejects a grid of more than the GPU holds at once. Such a launch is not early.
	Cooperative bool
}

// Kernel is a launch made ready: it is queued any number of times, with the
// same arguments, and queuing it allocates nothing.
type Kernel struct {
	device   *Device
	name     string
	work     Work
	launcher launcher
}

// NewKernel makes a launch ready. It rejects memory of other devices: only
// copies cross.
func (d *Device) NewKernel(spec KernelSpec) (*Kernel, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	for _, u := range spec.Uses {
		if err := u.Check(); err != nil {
			return nil, d.fail(fmt.Errorf("it may not touch %v: %w", u, err), "prepare %s", spec.Name)
		}
		if !u.Memory.within(d) {
			return nil, d.fail(fmt.Errorf("it may not touch %v", u), "prepare %s", spec.Name)
		}
	}
	for _, r := range spec.Reaches {
		if err := r.Check(); err != nil {
			return nil, d.fail(fmt.Errorf("it cannot reach %v: %w", r, err), "prepare %s", spec.Name)
		}
		if !d.Reaches(r.Memory) {
			return nil, d.fail(fmt.Errorf("it cannot reach %v: peer access is not enabled", r), "prepare %s", spec.Name)
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

// Argument returns the argument of a launch, which may be changed between two launches by
// the thread that makes them: a launch takes a copy. It is nil of what runs by KernelSpec.Run.
func (k *Kernel) Argument() []byte {
	if a, ok := k.launcher.(argued); ok {
		return a.argument()
	}
	return nil
}

// Name returns the name given in the spec.
func (k *Kernel) Name() string { return k.name }

// Close frees the launch. Closing twice is no error.
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
	// Usage returns what one thread and one block of the kernel need.
	Usage() (Usage, error)
	// AtOnce returns how many blocks of so many threads, with so many bytes of dynamic shared memory,
	// one multiprocessor holds at a time.
	AtOnce(threads, shared int) (int, error)
}

// Usage is what a kernel of a GPU needs.
type Usage struct {
	Registers int // a thread
	Local     int // bytes a thread, spills among them
	Shared    int // bytes a block, static
	Threads   int // the most a block may have
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

// Function returns the kernel of that name.
func (m *Module) Function(name string) (Function, error) {
	if err := m.device.alive(); err != nil {
		return nil, err
	}
	f, err := m.module.function(name)
	return f, m.device.fail(err, "find kernel %s", name)
}

// Close unloads the module. Closing twice is no error.
func (m *Module) Close() error {
	return m.device.discard(m, m.module.close, "unload a module")
}
