//go:build linux && !cgo && (amd64 || arm64)

package dl

import "github.com/ebitengine/purego"

// Flags of dlopen.
const (
	Now    = purego.RTLD_NOW
	Global = purego.RTLD_GLOBAL
	Loaded = 4 // RTLD_NOLOAD of Linux: only if the process has already loaded it
)

func open(path string, flags int) (Library, error) {
	handle, err := purego.Dlopen(path, flags)
	return Library(handle), err
}

// Symbol returns the address of a function or a variable, 0 if the library does not have it.
func (l Library) Symbol(name string) uintptr {
	address, _ := purego.Dlsym(uintptr(l), name)
	return address
}

// Call calls a function that returns int.
func Call(function uintptr, a Args) int32 {
	result, _, _ := purego.SyscallN(function, a[:]...)
	return int32(result)
}
