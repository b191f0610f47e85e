package streams

import (
	"errors"
	"fmt"

	"github.com/halox/halox/internal/cuda"
)

// ErrNoDriver says that there is no CUDA driver, or no GPU, on this machine.
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

	errClosed = errors.New("it is closed")
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
	e := &Error{Device: d.String(), Doing: fmt.Sprintf(doing, args...), Err: err, Fatal: errors.Is(err, errHangs) || d.driver.fatal(err)}
	if e.Fatal {
		d.dead.CompareAndSwap(nil, e)
	}
	if first := d.dead.Load(); first != nil {
		return first
	}
	return e
}
