//go:build linux && cgo

package nvrtc

// #include <stdlib.h>
import "C"

import "unsafe"

// cStrings is a char *[] in C memory: cgo forbids to give C an array in Go
// memory, and its strings are C's to begin with.
type cStrings []*C.char

func newStrings(texts []string) cStrings {
	if len(texts) == 0 {
		return nil
	}
	array := (**C.char)(C.calloc(C.size_t(len(texts)), C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	s := cStrings(unsafe.Slice(array, len(texts)))
	for i, text := range texts {
		s[i] = C.CString(text)
	}
	return s
}

// first is what C takes for the array, nil for an empty one.
func (s cStrings) first() **C.char { return unsafe.SliceData(s) }

func (s cStrings) free() {
	for _, text := range s {
		C.free(unsafe.Pointer(text))
	}
	C.free(unsafe.Pointer(s.first()))
}
