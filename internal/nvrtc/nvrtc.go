// Package nvrtc binds NVRTC, the library that compiles CUDA C++ at run time.
//
// NVRTC needs neither a GPU nor a driver. It is opened at run time: [Find] finds it in CUDA toolkits and Python wheels,
// [Open] loads it, and [Compiler.Compile] compiles a source to a cubin or PTX.
//
// Without cgo, and on systems other than Linux, Find and Open return [ErrUnsupported].
package nvrtc

import (
	"errors"
	"fmt"
	"strings"
)

// Source is a translation unit: the main file, and all included headers.
type Source struct {
	Name    string // file name in messages
	Text    string // CUDA C++
	Headers []Header
}

// Header is the file that #include "Name" includes.
type Header struct{ Name, Text string }

// Result is the result of a compilation.
type Result struct {
	// Image is a cubin if the options name a real architecture (sm_90), and PTX text without a final zero if they name
	// a virtual one (compute_90).
	Image []byte
	// Log has the warnings, and the usage that [ParseUsage] reads.
	Log string
}

var (
	// ErrNotFound means that Find did not find NVRTC.
	ErrNotFound = errors.New("NVRTC not found")

	// ErrUnsupported means that this build has no NVRTC binding.
	ErrUnsupported = errors.New("NVRTC needs Linux and a build with cgo")
)

// NotFoundError is an [ErrNotFound] with the searched places.
type NotFoundError struct {
	Tried []string
}

// Error returns a remedy and the places.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf(
		"%v; pip install nvidia-cuda-nvrtc or install the CUDA toolkit, or name the library in HALOX_NVRTC; "+
			"searched %s",
		ErrNotFound, strings.Join(e.Tried, ", "))
}

// Is matches ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Error is a failed NVRTC call.
type Error struct {
	Call   string // NVRTC's function
	Code   int    // its result
	Text   string // NVRTC's name of the code
	Source string // name of the source; "" if there is none
	Log    string // log of the compiler; may be empty
}

// Error returns the call, the source, the code and the log.
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
