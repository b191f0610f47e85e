//go:build linux && cgo

package nccl

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "table.h"
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Library is an NCCL library in this process. It is never unloaded: it has threads.
type Library struct {
	Path    string
	Version string // "2.27.5"

	table *C.halox_nccl
}

// Open opens the library at path, or DefaultLibrary where it is empty. The error is ErrNotFound, ErrUnsupported, or
// names what the library lacks: NCCL before 2.14 has no communicators that do not block.
func Open(path string) (*Library, error) {
	if path == "" {
		path = DefaultLibrary
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	why := make([]C.char, 4096)
	var missing C.int
	table := C.halox_nccl_open(name, &why[0], C.size_t(len(why)), &missing)
	text := C.GoString(&why[0])
	switch {
	case table == nil && missing > 0:
		return nil, fmt.Errorf("%s is no NCCL library, or one before 2.14: it lacks %s", path,
			strings.ReplaceAll(text, " ", ", "))
	case table == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotFound, text)
	}
	l := &Library{Path: path, table: table}
	var v C.int
	if err := l.check("ncclGetVersion", nil, func() C.int { return C.halox_nccl_version(table, &v) }); err != nil {
		return nil, err
	}
	l.Version = fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
	return l, nil
}

// NewID returns what the ranks of a new communicator are to have in common. The process that makes it listens for the
// others.
func (l *Library) NewID() (id ID, err error) {
	err = l.check("ncclGetUniqueId", nil, func() C.int { return C.halox_nccl_id(l.table, unsafe.Pointer(&id)) })
	return id, err
}

// check makes a call, and an error of its result. That something is under way is none. NCCL keeps its last words by
// thread.
func (l *Library) check(name string, comm C.nccl_comm, call func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code := call()
	if code == C.NCCL_SUCCESS || code == C.NCCL_IN_PROGRESS {
		return nil
	}
	return l.failure(name, comm, code)
}

func (l *Library) failure(name string, comm C.nccl_comm, code C.int) error {
	return &Error{name, int(code), C.GoString(C.halox_nccl_text(l.table, code)),
		strings.TrimSpace(C.GoString(C.halox_nccl_last(l.table, comm)))}
}

// Comm is one rank of a communicator. One goroutine at a time uses it, but for Abort.
type Comm struct {
	library *Library
	// memory of C, never freed: NCCL writes the handle there also when the call that makes it has returned
	place *C.nccl_comm
}

// Begin begins to make one rank of a communicator, on the device of the calling thread's context. All ranks must, with
// the same id. Ready says when it is made. The calling goroutine is locked to its thread.
func (l *Library) Begin(id ID, ranks, rank int) (*Comm, error) {
	c := &Comm{library: l, place: (*C.nccl_comm)(C.calloc(1, C.sizeof_nccl_comm))}
	err := l.check("ncclCommInitRankConfig", nil, func() C.int {
		return C.halox_nccl_begin(l.table, c.place, C.int(ranks), unsafe.Pointer(&id), C.int(rank))
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Ready reports whether what was begun is no longer under way: the communicator is made, the message is queued on its
// stream, or all has ended. An error is what it failed of.
func (c *Comm) Ready() (bool, error) {
	var state C.int
	err := c.library.check("ncclCommGetAsyncError", *c.place, func() C.int {
		return C.halox_nccl_state(c.library.table,
			*c.place, &state)
	})
	switch {
	case err != nil:
		return false, err
	case state == C.NCCL_IN_PROGRESS:
		return false, nil
	case state != C.NCCL_SUCCESS:
		return false, c.library.failure("NCCL", *c.place, state)
	}
	return true, nil
}

// Send begins to queue a message to another rank on a stream of the device: so many bytes of its memory. It is queued
// when Ready says so, and arrives where the other rank calls Receive. Messages from one rank to another arrive in
// order.
func (c *Comm) Send(address uint64, bytes int64, to int, stream uintptr) error {
	return c.message("ncclSend", true, address, bytes, to, stream)
}

// Receive begins to queue the receipt of a message of exactly so many bytes, as Send.
func (c *Comm) Receive(address uint64, bytes int64, from int, stream uintptr) error {
	return c.message("ncclRecv", false, address, bytes, from, stream)
}

func (c *Comm) message(name string, sends bool, address uint64, bytes int64, other int, stream uintptr) error {
	way := C.int(0)
	if sends {
		way = 1
	}
	return c.library.check(name, *c.place, func() C.int {
		return C.halox_nccl_message(c.library.table, *c.place, way, C.uintptr_t(address), C.size_t(bytes), C.int(other),
			C.uintptr_t(stream))
	})
}

// Finalize begins to end the communicator, which all ranks do. When Ready says so, Destroy is called.
func (c *Comm) Finalize() error {
	return c.library.check("ncclCommFinalize", *c.place, func() C.int {
		return C.halox_nccl_finalize(c.library.table,
			*c.place)
	})
}

// Destroy frees what the communicator holds.
func (c *Comm) Destroy() error {
	comm := *c.place
	*c.place = nil
	return c.library.check("ncclCommDestroy", nil, func() C.int { return C.halox_nccl_destroy(c.library.table, comm) })
}

// Abort ends what is under way, also on the device, and frees what the communicator holds. No other rank is asked.
func (c *Comm) Abort() error {
	comm := *c.place
	*c.place = nil
	if comm == nil {
		return nil
	}
	return c.library.check("ncclCommAbort", nil, func() C.int { return C.halox_nccl_abort(c.library.table, comm) })
}
