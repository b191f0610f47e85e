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

// Resources are closed together, the last one first, but streams before all else: what is still
// queued on them after an error may use the rest. What is in use stays, to be closed by another Close.
//
// They keep the first error of what they make, so that it is checked once, by Err or Done, before anything made is
// used. After an error they make nothing more and return nil.
type Resources struct {
	closers []io.Closer
	err     error
}

// Add remembers what has to be closed.
func (r *Resources) Add(closers ...io.Closer) { r.closers = append(r.closers, closers...) }

// Err returns the first error of what was to be made.
func (r *Resources) Err() error { return r.err }

// Done returns the first error of what was to be made. If there is one, everything is closed.
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

// NewTimedEvent creates an event that takes the time.
func (r *Resources) NewTimedEvent(d *Device) *Event { return made(r, d.NewTimedEvent) }

func made[T io.Closer](r *Resources, create func() (T, error)) (x T) {
	if r.err == nil {
		Into(r, &x)(create())
	}
	return x
}

// Into returns a function that takes what a call has made, and its error, as the methods of Resources do:
// Into(&r, &x)(New(y)). The call is made in any case.
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

// Close closes everything, see Resources. Streams of several devices are waited for together.
// Closing twice is no error.
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

// Upload allocates memory on a device and fills it with the bytes of the values; none are an error. T holds no
// pointers. It waits until they are there.
func Upload[T any](d *Device, values []T) (m *Memory, err error) {
	if len(values) == 0 {
		return nil, errors.New("streams: upload of no values")
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

// WrapStream returns a stream that the caller made with CUDA, a CUstream or
// cudaStream_t of this device, so that halox can order its work after and before
// the caller's. Close leaves the caller's stream as it is.
func (d *Device) WrapStream(handle uintptr) (*Stream, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	w, ok := d.driver.(wrapper)
	if !ok || handle == 0 {
		return nil, d.fail(errNotWrapped, "take stream %#x of the caller", handle)
	}
	s := &Stream{device: d, queue: w.wrapQueue(handle), track: d.newTrack()}
	return s, d.keep(s)
}

// Handle returns the stream as libraries of CUDA take it, a CUstream or cudaStream_t; 0 of a host device.
func (s *Stream) Handle() uintptr {
	if q, ok := s.queue.(handled); ok {
		return q.handle()
	}
	return 0
}

// Within calls do on a thread whose current CUDA context is that of the device, as libraries of CUDA find it. It is an
// error on a host device.
func (d *Device) Within(do func() error) error {
	if err := d.usable(); err != nil {
		return err
	}
	e, ok := d.driver.(entered)
	if !ok {
		return d.fail(errNotEntered, "call a library of CUDA")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := e.enter(); err != nil {
		return d.fail(err, "call a library of CUDA")
	}
	return do()
}

var errNotEntered = errors.New("only a GPU has a context")

// WrapMemory returns device memory that the caller has: its address on a GPU, a
// CUdeviceptr, and its size in bytes. Close leaves the memory as it is; it must
// outlive all that uses it here.
func (d *Device) WrapMemory(address uint64, bytes int64) (*Memory, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if _, ok := d.driver.(wrapper); !ok || address == 0 || bytes < 1 || uint64(bytes) > math.MaxUint64-address {
		return nil, d.fail(errNotWrapped, "take %d bytes of the caller at %#x", bytes, address)
	}
	return &Memory{device: d, size: bytes, addr: address}, nil
}

// WrapBytes returns memory of a host device that the caller has.
func (d *Device) WrapBytes(bytes []byte) (*Memory, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if !d.HostMemory || len(bytes) == 0 {
		return nil, d.fail(errNotWrapped, "take %d bytes of the caller", len(bytes))
	}
	return &Memory{device: d, size: int64(len(bytes)), bytes: bytes}, nil
}

var errNotWrapped = errors.New("only a GPU takes streams and addresses, which are not 0 and end within 64 bits, " +
	"and only a host device bytes")
