//go:build linux && cgo && (amd64 || arm64)

package dl

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "dl.h"
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// Flags of dlopen.
const (
	Now    = C.RTLD_NOW
	Global = C.RTLD_GLOBAL
	Loaded = C.RTLD_NOLOAD // only if the process has already loaded it
)

func open(path string, flags int) (Library, error) {
	runtime.LockOSThread() // the loader keeps its error message per thread
	defer runtime.UnlockOSThread()
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.halox_dl_open(name, C.int(flags))
	if handle == 0 {
		return 0, errors.New(C.GoString(C.halox_dl_error()))
	}
	return Library(handle), nil
}

// Symbol returns the address of a function or a variable, 0 if the library does not have it.
func (l Library) Symbol(name string) uintptr {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return uintptr(C.halox_dl_symbol(C.uintptr_t(l), cname))
}

// Call calls a function that returns int. It does not allocate.
func Call(function uintptr, a Args) int32 {
	return int32(C.halox_dl_call(
		C.uintptr_t(function), C.uintptr_t(a[0]), C.uintptr_t(a[1]), C.uintptr_t(a[2]), C.uintptr_t(a[3]),
		C.uintptr_t(a[4]), C.uintptr_t(a[5]), C.uintptr_t(a[6]), C.uintptr_t(a[7]), C.uintptr_t(a[8]),
	))
}
