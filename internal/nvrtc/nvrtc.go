// Package nvrtc binds NVRTC, the library that compiles CUDA C++ at run time.
//
// NVRTC needs neither a GPU nor a driver. It is opened at run time: [Find]
// looks for it where CUDA toolkits and Python wheels put it, [Open] loads it,
// and [Compiler.Compile] turns a source into a cubin or PTX.
//
// Where cgo is off, and on other systems than Linux, Find and Open return
// [ErrUnsupported].
package nvrtc

import (
	"errors"
	"fmt"
	"strings"
)

// Source is a translation unit: the main file, and the headers that it and they include.
type Source struct {
	Name    string // what messages call it, as a file name
	Text    string // CUDA C++
	Headers []Header
}

// Header is what #include "Name" stands for.
type Header struct{ Name, Text string }

// Result is what came of a source.
type Result struct {
	// Image is a cubin when the options name a real architecture (sm_90), and
	// PTX text without a final zero when they name a virtual one (compute_90).
	Image []byte
	// Log has the warnings, and the usage that [ParseUsage] reads.
	Log string
}

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
	return fmt.Sprintf(
		"%v; pip install nvidia-cuda-nvrtc or install the CUDA toolkit, or name the library in HALOX_NVRTC; "+
			"looked for %s",
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
