package nvrtc

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound says that NVRTC is not installed where Find looked.
	ErrNotFound = errors.New("NVRTC not found")

	// ErrUnsupported says that this build has no NVRTC binding.
	ErrUnsupported = errors.New("NVRTC needs Linux and a build with cgo")
)

// NotFoundError is an [ErrNotFound] that says where Find looked.
type NotFoundError struct {
	Tried []string
}

// Error says what to do about it, and lists the places.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%v; pip install nvidia-cuda-nvrtc or install the CUDA toolkit, or name the library in HALOX_NVRTC; looked for %s",
		ErrNotFound, strings.Join(e.Tried, ", "))
}

// Is matches ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Error is an NVRTC call that failed.
type Error struct {
	Call   string // NVRTC's function
	Code   int    // its result
	Text   string // NVRTC's name of the code
	Source string // the name of the source, empty where there is none
	Log    string // what the compiler said, empty where it said nothing
}

// Error names the call, the source and the code, and ends with the log.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Source != "" {
		fmt.Fprintf(&b, "%s: ", e.Source)
	}
	fmt.Fprintf(&b, "%s: %s (%d)", e.Call, e.Text, e.Code)
	if e.Log != "" {
		fmt.Fprintf(&b, "\n%s", e.Log)
	}
	return b.String()
}
