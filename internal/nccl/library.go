//go:build linux && cgo

package nccl

// #include <stdlib.h>
// #include "begin.h"
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/halox/halox/internal/dl"
)

// Library is an NCCL library in this process. It is never unloaded, since it has threads.
type Library struct {
	Path    string
	Version string // "2.27.5"

	at         []uintptr // by function
	text, last uintptr   // ncclGetErrorString and ncclGetLastError, 0 if the library lacks them
}

// A function is an index of the table of addresses.
type function int

const (
	fGetVersion function = iota
	fGetUniqueID
	fCommInitRankConfig
	fCommGetAsyncError
	fCommFinalize
	fCommDestroy
	fCommAbort
	fGroupStart
	fGroupEnd
	fSend
	fRecv
)

var functionNames = []string{
	"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError", "ncclCommFinalize",
	"ncclCommDestroy", "ncclCommAbort", "ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv",
}

// Values of ncclResult_t and ncclDataType_t.
const (
	success    = 0
	inProgress = 7
	uint8Type  = 1
)

// Open opens the library at path, or DefaultLibrary if it is empty. The error is ErrNotFound, ErrUnsupported, or names
// missing functions: NCCL before 2.14 has no non-blocking communicators.
func Open(path string) (*Library, error) {
	if path == "" {
		path = DefaultLibrary
	}
	library, err := dl.Open(path, dl.Now)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	l := &Library{Path: path, text: library.Symbol("ncclGetErrorString"), last: library.Symbol("ncclGetLastError")}
	var missing []string
	if l.at, missing = library.Table(functionNames); len(missing) > 0 {
		return nil, fmt.Errorf("%s: must be an NCCL library of version 2.14 or newer, lacks %s", path,
			strings.Join(missing, ", "))
	}
	place := newPlace()
	defer C.free(unsafe.Pointer(place))
	if err := l.call(fGetVersion, 0, addressOf(place)); err != nil {
		return nil, err
	}
	v := *place
	l.Version = fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
	return l, nil
}

// newPlace returns a zeroed word of C memory: NCCL may write to it after the call has returned.
func newPlace() *uintptr { return (*uintptr)(C.calloc(1, C.sizeof_uintptr_t)) }

func addressOf(place *uintptr) uintptr { return uintptr(unsafe.Pointer(place)) }

// NewID returns the ID that the ranks of a new communicator share. The process that makes it listens for the others.
func (l *Library) NewID() (id ID, err error) {
	made := C.calloc(1, C.size_t(len(id)))
	defer C.free(made)
	err = l.call(fGetUniqueID, 0, uintptr(made))
	return *(*ID)(made), err
}

// call calls a function for a communicator, or none.
func (l *Library) call(fn function, comm uintptr, arguments ...uintptr) error {
	return l.check(fn, comm, func() int32 { return l.plain(fn, arguments...) })
}

// plain calls a function on the calling thread.
func (l *Library) plain(fn function, arguments ...uintptr) int32 {
	var a dl.Args
	copy(a[:], arguments)
	return dl.Call(l.at[fn], a)
}

// check calls a function and converts its result into an error, unless it is ncclInProgress. NCCL keeps its last
// message per thread.
func (l *Library) check(fn function, comm uintptr, call func() int32) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code := call()
	if code == success || code == inProgress {
		return nil
	}
	return l.failure(functionNames[fn], comm, code)
}

func (l *Library) failure(name string, comm uintptr, code int32) error {
	text := C.GoString(C.halox_nccl_text(C.uintptr_t(l.text), C.uintptr_t(code)))
	last := C.GoString(C.halox_nccl_text(C.uintptr_t(l.last), C.uintptr_t(comm)))
	return &Error{name, int(code), text, strings.TrimSpace(last)}
}

// Comm is one rank of a communicator. One goroutine at a time uses it, except for Abort.
type Comm struct {
	library *Library
	place   *uintptr // the handle; never freed, nor is state
	state   *uintptr // for Ready
}

// Begin begins to create one rank of a communicator, on the device of the calling thread's context. All ranks must call
// it with the same id. Ready reports when it exists. The calling goroutine must be locked to its thread.
func (l *Library) Begin(id ID, ranks, rank int) (*Comm, error) {
	c := &Comm{library: l, place: newPlace(), state: newPlace()}
	err := l.check(fCommInitRankConfig, 0, func() int32 {
		place := (*unsafe.Pointer)(unsafe.Pointer(c.place))
		return int32(C.halox_nccl_begin(
			C.uintptr_t(l.at[fCommInitRankConfig]), place, C.int(ranks), unsafe.Pointer(&id), C.int(rank),
		))
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Ready reports whether the last operation is complete: the communicator exists, the message is queued on its stream,
// or the communicator has ended. The error is that of the operation.
func (c *Comm) Ready() (bool, error) {
	if err := c.library.call(fCommGetAsyncError, *c.place, *c.place, addressOf(c.state)); err != nil {
		return false, err
	}
	switch code := int32(*c.state); code {
	case success:
		return true, nil
	case inProgress:
		return false, nil
	default:
		return false, c.library.failure("NCCL", *c.place, code)
	}
}

// Send begins to queue a message of n bytes of device memory to another rank on a stream of the device. Ready reports
// when it is queued. The other rank receives it with Receive. Messages from one rank to another arrive in order.
func (c *Comm) Send(address uint64, bytes int64, to int, stream uintptr) error {
	return c.message(fSend, address, bytes, to, stream)
}

// Receive begins to queue the receive of a message of exactly n bytes, like Send.
func (c *Comm) Receive(address uint64, bytes int64, from int, stream uintptr) error {
	return c.message(fRecv, address, bytes, from, stream)
}

// message queues a message in a separate group.
func (c *Comm) message(fn function, address uint64, bytes int64, other int, stream uintptr) error {
	l, comm := c.library, *c.place
	return l.check(fn, comm, func() int32 {
		if code := l.plain(fGroupStart); code != success {
			return code
		}
		queued := l.plain(fn, uintptr(address), uintptr(bytes), uint8Type, uintptr(other), comm, stream)
		ended := l.plain(fGroupEnd)
		if queued != success && queued != inProgress {
			return queued
		}
		return ended
	})
}

// Finalize begins to end the communicator, on all ranks. When Ready returns true, call Destroy.
func (c *Comm) Finalize() error { return c.library.call(fCommFinalize, *c.place, *c.place) }

// Destroy frees the communicator.
func (c *Comm) Destroy() error { return c.drop(fCommDestroy) }

// Abort ends pending work, also on the device, and frees the communicator, without the other ranks.
func (c *Comm) Abort() error { return c.drop(fCommAbort) }

// drop calls a function that frees the communicator, once.
func (c *Comm) drop(fn function) error {
	comm := *c.place
	*c.place = 0
	if comm == 0 {
		return nil
	}
	return c.library.call(fn, 0, comm)
}
