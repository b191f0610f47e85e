//go:build linux && !cgo && (amd64 || arm64)

package mpi

import "github.com/ebitengine/purego"

const supported = true

// How a library is loaded.
const (
	loadNow    = purego.RTLD_NOW
	loadGlobal = purego.RTLD_GLOBAL
	loadedOnly = 4 // RTLD_NOLOAD of Linux
)

// loadLibrary loads a library, "" for the program with all that is global in it.
func loadLibrary(path string, flags int) (uintptr, error) { return purego.Dlopen(path, flags) }

// symbolOf returns an address, 0 if the library does not have it.
func symbolOf(library uintptr, name string) uintptr {
	address, err := purego.Dlsym(library, name)
	if err != nil {
		return 0
	}
	return address
}

// arguments are those of the longest call.
type arguments [9]uintptr

// call calls a function of the library.
func call(function uintptr, a arguments) int32 {
	result, _, _ := purego.SyscallN(function, a[:]...)
	return int32(result)
}
