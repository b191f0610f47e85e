//go:build !linux || !(amd64 || arm64)

package mpi

const supported = false

const loadNow, loadGlobal, loadedOnly = 0, 0, 0

type arguments [9]uintptr

func loadLibrary(string, int) (uintptr, error) { return 0, ErrUnsupported }
func symbolOf(uintptr, string) uintptr         { return 0 }
func call(uintptr, arguments) int32            { return -1 }
