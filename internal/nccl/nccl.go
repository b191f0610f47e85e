// Package nccl binds NVIDIA's NCCL, which is opened at run time: building does not need NCCL.
//
// It supports messages between the two ranks of a communicator. Communicators are non-blocking: operations of Begin,
// Send and Receive are pending until Ready returns true, so that every wait can have a limit. After a wait that exceeds
// its limit, call Abort, which also ends work on the device.
//
// NCCL uses the device of the calling thread's CUDA context, see streams.Device.InContext. The package needs cgo and
// Linux; elsewhere Open returns [ErrUnsupported].
package nccl

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
)

// Variable is the environment variable that names the library.
const Variable = "HALOX_NCCL"

// DefaultLibrary is the name by which the loader finds the library.
const DefaultLibrary = "libnccl.so.2"

var (
	// ErrUnsupported means that this build cannot call NCCL.
	ErrUnsupported = errors.New("NCCL needs cgo on Linux")

	// ErrNotFound means that no library with the name was found.
	ErrNotFound = errors.New("no NCCL library found")
)

// ID is the ID of a communicator, shared by its ranks: ncclUniqueId.
type ID [128]byte

// Error is the error of an NCCL call.
type Error struct {
	Call string
	Code int    // ncclResult_t
	Text string // NCCL's description of the code
	Last string // NCCL's last error message, may be empty
}

// Error returns the call and the descriptions.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code)
	if e.Last != "" {
		text += ": " + e.Last
	}
	return text
}

// Log is the log of NCCL while it connects devices, the only source for the transports.
type Log struct{ path string } // "" if the user has enabled NCCL's log

// The variables that configure NCCL's log.
const (
	debugVariable = "NCCL_DEBUG"
	fileVariable  = "NCCL_DEBUG_FILE"
)

// StartLog makes NCCL write a log, unless the user has enabled one. It must be called before the first call of NCCL.
func StartLog() (*Log, error) {
	if os.Getenv(debugVariable) != "" || os.Getenv(fileVariable) != "" {
		return &Log{}, nil
	}
	f, err := os.CreateTemp("", "halox-nccl-*.log")
	if err != nil {
		return nil, err
	}
	return &Log{f.Name()}, errors.Join(f.Close(), os.Setenv(fileVariable, f.Name()), os.Setenv(debugVariable, "INFO"))
}

// via finds the transport of a connection in the log: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM".
var via = regexp.MustCompile(`(?m) -> \d+\[[0-9a-f]+\](?: \[\w+\])? via ([\w/.-]+)`)

// Transports returns the transports that NCCL has used so far, by its names, each once: "P2P/CUMEM", "NET/IB/0". It is
// nil if they are not known.
func (l *Log) Transports() (all []string) {
	if l.path == "" {
		return nil
	}
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil
	}
	for _, found := range via.FindAllSubmatch(text, -1) {
		if name := string(found[1]); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Close ends the log.
func (l *Log) Close() error {
	if l.path == "" {
		return nil
	}
	path := l.path
	l.path = ""
	return errors.Join(os.Unsetenv(debugVariable), os.Unsetenv(fileVariable), os.Remove(path))
}
