//go:build linux && cgo && (amd64 || arm64)

package mpi

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "call.h"
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

const supported = true

// How a library is loaded.
const (
	loadNow    = C.RTLD_NOW
	loadGlobal = C.RTLD_GLOBAL
	loadedOnly = C.RTLD_NOLOAD
)

// loadLibrary loads a library, "" for the program with all that is global in it.
func loadLibrary(path string, flags int) (uintptr, error) {
	runtime.LockOSThread() // the loader keeps its words by thread
	defer runtime.UnlockOSThread()
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	library := C.halox_mpi_open(name, C.int(flags))
	if library == 0 {
		return 0, errors.New(C.GoString(C.halox_mpi_why()))
	}
	return uintptr(library), nil
}

// symbolOf returns an address, 0 if the library does not have it.
func symbolOf(library uintptr, name string) uintptr {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return uintptr(C.halox_mpi_symbol(C.uintptr_t(library), cname))
}

// arguments are those of the longest call.
type arguments [9]uintptr

// call calls a function of the library.
func call(function uintptr, a arguments) int32 {
	return int32(C.halox_mpi_call(C.uintptr_t(function), C.uintptr_t(a[0]), C.uintptr_t(a[1]), C.uintptr_t(a[2]),
		C.uintptr_t(a[3]),
		C.uintptr_t(a[4]), C.uintptr_t(a[5]), C.uintptr_t(a[6]), C.uintptr_t(a[7]), C.uintptr_t(a[8])))
}
