package streams

import (
	"errors"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/guard"
)

// Resources are closed together, the last one first, except that streams are closed before everything else: work
// still queued on them after an error may use the rest. Resources in use stay open, to be closed by another Close.
//
// Resources keep the first error of their methods, so that it is checked once, by Err or Done, before the objects
// are used. After an error they create nothing more and return nil.
type Resources struct {
	closers []io.Closer
	err     error
}

// Add adds objects to be closed.
func (r *Resources) Add(closers ...io.Closer) { r.closers = append(r.closers, closers...) }

// Err returns the first error of a creation.
func (r *Resources) Err() error { return r.err }

// Done returns the first error of a creation. If there is one, everything is closed.
func (r *Resources) Done() error {
	if r.err == nil {
		return nil
	}
	return errors.Join(r.err, r.Close())
}

// Alloc allocates memory of a device.
func (r *Resources) Alloc(d *Device, bytes int64) *Memory {
	return made(r, func() (*Memory, error) { return d.Alloc(bytes) })
}

// AllocPinned allocates pinned host memory of a device.
func (r *Resources) AllocPinned(d *Device, bytes int64) *Memory {
	return made(r, func() (*Memory, error) { return d.AllocPinned(bytes) })
}

// NewStream creates a stream.
func (r *Resources) NewStream(d *Device, p Priority) *Stream {
	return made(r, func() (*Stream, error) { return d.NewStream(p) })
}

// NewEvent creates an event.
func (r *Resources) NewEvent(d *Device) *Event { return made(r, d.NewEvent) }

// NewTimedEvent creates an event with a time.
func (r *Resources) NewTimedEvent(d *Device) *Event { return made(r, d.NewTimedEvent) }

func made[T io.Closer](r *Resources, create func() (T, error)) (x T) {
	if r.err == nil {
		Into(r, &x)(create())
	}
	return x
}

// Into returns a function that takes the results of a constructor, an object and an error, as the methods of
// Resources do: Into(&r, &x)(New(y)). The constructor is called even after an error.
func Into[T io.Closer](r *Resources, to *T) func(T, error) {
	return func(x T, err error) {
		if err == nil {
			*to = x
			r.Add(x)
		} else if r.err == nil {
			r.err = err
		}
	}
}

// Close closes everything, see Resources. It waits for streams of several devices together. Closing twice is
// allowed.
func (r *Resources) Close() error {
	streams := map[*Device][]*Stream{}
	var errs []error
	for _, x := range slices.Backward(r.closers) {
		if s, ok := x.(*Stream); ok && s != nil {
			streams[s.device] = append(streams[s.device], s)
		}
	}
	errs = append(errs, eachDevice(slices.Collect(maps.Keys(streams)), func(d *Device) (err error) {
		for _, s := range streams[d] {
			err = errors.Join(err, s.Close())
		}
		return err
	}))
	var busy []io.Closer
	for _, x := range slices.Backward(r.closers) {
		if _, ok := x.(*Stream); ok {
			continue
		}
		err := x.Close()
		if errs = append(errs, err); errors.Is(err, guard.ErrBusy) {
			busy = append(busy, x)
		}
	}
	slices.Reverse(busy)
	r.closers = busy
	return errors.Join(errs...)
}

// UploadLimit is how long Upload waits for the device.
const UploadLimit = 30 * time.Second

// Upload allocates memory on a device, fills it with the bytes of the values, and waits for the copy. There must
// be at least one value. T must not contain pointers.
func Upload[T any](d *Device, values []T) (m *Memory, err error) {
	if len(values) == 0 {
		return nil, errors.New("streams: upload: must have at least one value")
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
	var open Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	host, s := open.AllocPinned(d, int64(len(bytes))), open.NewStream(d, Normal)
	if err := open.Err(); err != nil {
		return nil, err
	}
	copy(host.Bytes(), bytes)
	if m, err = d.Alloc(int64(len(bytes))); err != nil {
		return nil, err
	}
	if err = errors.Join(s.Copy(m.All(), host.All()), s.Sync(UploadLimit)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// WrapStream returns a stream that the caller created with CUDA, a CUstream or cudaStream_t of this device, so
// that halox can order its work with the caller's. Close leaves the caller's stream unchanged.
func (d *Device) WrapStream(handle uintptr) (*Stream, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	w, ok := d.driver.(wrapper)
	if !ok || handle == 0 {
		return nil, d.fail(errNotWrapped, "wrap stream %#x", handle)
	}
	s := &Stream{device: d, queue: w.wrapQueue(handle), track: d.newTrack()}
	return s, d.keep(s)
}

// Handle returns the stream for CUDA libraries, a CUstream or cudaStream_t; 0 for a CPU device.
func (s *Stream) Handle() uintptr {
	if q, ok := s.queue.(handled); ok {
		return q.handle()
	}
	return 0
}

// InContext calls do on a thread whose current CUDA context is that of the device, as CUDA libraries need it. It
// returns an error on a CPU device.
func (d *Device) InContext(do func() error) error {
	if err := d.usable(); err != nil {
		return err
	}
	e, ok := d.driver.(entered)
	if !ok {
		return d.fail(errNotEntered, "call a CUDA library")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := e.enter(); err != nil {
		return d.fail(err, "call a CUDA library")
	}
	return do()
}

var errNotEntered = errors.New("must be a GPU")

// WrapMemory returns device memory owned by the caller, given by its address on a GPU, a CUdeviceptr, and its size
// in bytes. Close leaves the memory unchanged; it must outlive everything that uses it.
func (d *Device) WrapMemory(address uint64, bytes int64) (*Memory, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if _, ok := d.driver.(wrapper); !ok || address == 0 || bytes < 1 || uint64(bytes) > math.MaxUint64-address {
		return nil, d.fail(errNotWrapped, "wrap %d bytes at %#x", bytes, address)
	}
	return &Memory{device: d, size: bytes, addr: address}, nil
}

// WrapBytes returns memory of a CPU device that the caller owns.
func (d *Device) WrapBytes(bytes []byte) (*Memory, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if !d.HostMemory || len(bytes) == 0 {
		return nil, d.fail(errNotWrapped, "wrap %d bytes", len(bytes))
	}
	return &Memory{device: d, size: int64(len(bytes)), bytes: bytes}, nil
}

var errNotWrapped = errors.New("streams and addresses must be for a GPU, not 0, and end within 64 bits; " +
	"bytes must be for a CPU device")
