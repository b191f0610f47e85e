package cuda

import (
	"errors"
	"fmt"
)

var (
	// ErrNoDriver says that there is nothing to run on: the driver library
	// could not be opened, or it found no device. In the second case the
	// error is also [CodeNoDevice].
	ErrNoDriver = errors.New("no usable CUDA driver")

	// ErrNoLibrary is the ErrNoDriver of a driver library that could not be opened.
	ErrNoLibrary = fmt.Errorf("%w: cannot open its library", ErrNoDriver)

	// ErrUnsupported says that this build has no CUDA binding.
	ErrUnsupported = errors.New("CUDA needs Linux and a build with cgo")
)

// NoDevice stands in [Error.Device] when a call concerns no one device.
const NoDevice = -1

// Error is a driver call that failed. A call that works in a context may also
// fail on the way into it; the error then names the call all the same.
type Error struct {
	Call   string // the driver's function, without its version suffix
	Code   Code
	Name   string // the driver's name of the code, CUDA_ERROR_...
	Text   string // the driver's description, and its log if it kept one
	Device int    // ordinal, or NoDevice
}

// Error names the device, the call and the code.
func (e *Error) Error() string {
	where := ""
	if e.Device != NoDevice {
		where = fmt.Sprintf("device %d: ", e.Device)
	}
	return fmt.Sprintf("%s%s: %s (%d): %s", where, e.Call, e.Name, int32(e.Code), e.Text)
}

// Is matches the error's own [Code].
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// IsSticky reports whether err holds an [*Error] with a sticky code, see
// [Code.Sticky].
func IsSticky(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code.Sticky()
}
