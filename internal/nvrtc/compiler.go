//go:build linux && cgo

package nvrtc

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "table.h"
import "C"

import (
	"fmt"
	"path/filepath"
	"unsafe"
)

const supported = true

// Compiler is a loaded NVRTC. Make one with [Open]. All methods but Close may
// be called from several goroutines at once; NVRTC promises that for calls on
// different programs, and no program is shared.
type Compiler struct {
	table *C.halox_nvrtc // C memory; nil after Close
}

// Open loads the library at path, which [Find] gives.
func Open(path string) (*Compiler, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	why := make([]C.char, 4096)
	table := C.halox_nvrtc_open(name, &why[0], C.size_t(len(why)))
	if table == nil {
		return nil, fmt.Errorf("load NVRTC from %s: %s", path, C.GoString(&why[0]))
	}
	c := &Compiler{table: table}
	c.loadBuiltins()
	return c, nil
}

// loadBuiltins loads the second library that NVRTC needs. NVRTC asks the loader
// for it by its bare name, which fails for a library outside of the loader's
// path, such as a wheel's, unless the process has it already.
func (c *Compiler) loadBuiltins() {
	file := make([]C.char, 4096)
	C.halox_nvrtc_file(c.table, &file[0], C.size_t(len(file)))
	folder := filepath.Dir(C.GoString(&file[0]))
	found, _ := filepath.Glob(filepath.Join(folder, "libnvrtc-builtins.so*"))
	for _, path := range found {
		loads(path)
	}
}

// loads reports whether the loader can load a library, and leaves it loaded.
func loads(name string) bool {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return C.halox_nvrtc_load(cname) != 0
}

// Close frees what Open made; the library stays in the process. Nothing but
// Close may be called afterwards. Closing twice does nothing.
func (c *Compiler) Close() error {
	C.free(unsafe.Pointer(c.table))
	c.table = nil
	return nil
}

// Version is the CUDA version that the compiler is of.
func (c *Compiler) Version() (major, minor int, err error) {
	var a, b C.int
	rc := C.halox_nvrtc_version(c.table, &a, &b)
	return int(a), int(b), c.check("nvrtcVersion", rc)
}

// SupportedArchs are the architectures that --gpu-architecture takes, as 10 *
// major + minor of the compute capability, ascending.
func (c *Compiler) SupportedArchs() ([]int, error) {
	var n C.int
	if err := c.check("nvrtcGetNumSupportedArchs", C.halox_nvrtc_arch_count(c.table, &n)); err != nil || n == 0 {
		return nil, err
	}
	archs := make([]C.int, n)
	if err := c.check("nvrtcGetSupportedArchs", C.halox_nvrtc_archs(c.table, &archs[0])); err != nil {
		return nil, err
	}
	out := make([]int, n)
	for i, a := range archs {
		out[i] = int(a)
	}
	return out, nil
}

// check makes an error of a result, or nil of success.
func (c *Compiler) check(call string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return c.failure(call, rc)
}

func (c *Compiler) failure(call string, rc C.int) *Error {
	return &Error{Call: call, Code: int(rc), Text: C.GoString(C.halox_nvrtc_error(c.table, rc))}
}
