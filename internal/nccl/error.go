package nccl

import (
	"errors"
	"fmt"
)

// Variable is the environment's variable that names the library.
const Variable = "HALOX_NCCL"

// DefaultLibrary is the name by which the loader finds it.
const DefaultLibrary = "libnccl.so.2"

var (
	// ErrUnsupported says that this build cannot call NCCL.
	ErrUnsupported = errors.New("NCCL needs cgo on Linux")

	// ErrNotFound says that there is no library of the name.
	ErrNotFound = errors.New("no NCCL library found")
)

// ID is what the ranks of a communicator have in common: ncclUniqueId.
type ID [128]byte

// Error is what a call of NCCL failed of.
type Error struct {
	Call string
	Code int    // ncclResult_t
	Text string // NCCL's words for the code
	Last string // and for what went wrong last, which may be empty
}

// Error names the call.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code)
	if e.Last != "" {
		text += ": " + e.Last
	}
	return text
}
