// Package nccl binds NVIDIA's NCCL, which is opened at run time: nothing of it is needed to build.
//
// Of NCCL it has messages between the two ranks of a communicator. Communicators do not block: what Begin, Send and
// Receive have begun is under way until Ready says otherwise, so that every wait can have a limit. Whoever waited too
// long calls Abort, which also ends what runs on the device.
//
// NCCL finds the device by the CUDA context of the calling thread, see streams.Device.Within. It needs cgo and Linux;
// elsewhere Open returns [ErrUnsupported].
package nccl

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
)

// Variable is the environment's variable that names the library.
const Variable = "HALOX_NCCL"

// DefaultLibrary is the name by which the loader finds it.
const DefaultLibrary = "libnccl.so.2"

var (
	// ErrUnsupported says that this build cannot call NCCL.
	ErrUnsupported = errors.New("NCCL needs cgo on Linux")

	// ErrNotFound says that no library of the name was found.
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

// Log is what NCCL writes while it connects devices, which alone says over what.
type Log struct{ path string } // "" where a user has asked for NCCL's log

// The variables that say what NCCL writes, and where.
const (
	debugVariable = "NCCL_DEBUG"
	fileVariable  = "NCCL_DEBUG_FILE"
)

// StartLog has NCCL keep a log, unless a user has asked for one. It comes before the first call of NCCL.
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

// via finds what NCCL says of a connection: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM".
var via = regexp.MustCompile(`(?m) -> \d+\[[0-9a-f]+\](?: \[\w+\])? via ([\w/.-]+)`)

// Transports returns over what NCCL has connected devices until now, in its words, each once: "P2P/CUMEM", "NET/IB/0".
// It is nil where that is not known.
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
