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

// Open opens the library at path, or DefaultLibrary where it is empty. The error is ErrNotFound, ErrUnsupported, or names what
// the library lacks: NCCL before 2.14 has no communicators that do not block.
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
		return nil, fmt.Errorf("%s is no NCCL library, or one before 2.14: it lacks %s", path, strings.ReplaceAll(text, " ", ", "))
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

// NewID returns what the ranks of a new communicator are to have in common. The process that makes it listens for the others.
func (l *Library) NewID() (id ID, err error) {
	err = l.check("ncclGetUniqueId", nil, func() C.int { return C.halox_nccl_id(l.table, unsafe.Pointer(&id)) })
	return id, err
}

// check makes a call, and an error of its result. That something is under way is none. NCCL keeps its last words by thread.
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
	return &Error{name, int(code), C.GoString(C.halox_nccl_text(l.table, code)), strings.TrimSpace(C.GoString(C.halox_nccl_last(l.table, comm)))}
}
