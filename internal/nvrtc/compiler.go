//go:build linux && cgo

package nvrtc

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "table.h"
import "C"

import (
	"bytes"
	"fmt"
	"path/filepath"
	"unsafe"

	"github.com/halox/halox/internal/dl"
)

const supported = true

// Compiler is a loaded NVRTC library, see [Open]. All methods except Close may be called from several goroutines at
// once.
type Compiler struct {
	table *C.halox_nvrtc // C memory; nil after Close
}

// Open loads the library at path, which [Find] returns.
func Open(path string) (*Compiler, error) {
	if err := dl.Check(path); err != nil {
		return nil, fmt.Errorf("load NVRTC: %w", err)
	}
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

// loadBuiltins loads the second library that NVRTC needs. NVRTC loads it by its bare name, which fails for a library
// outside of the loader's path, such as that of a wheel, unless the process has already loaded it.
func (c *Compiler) loadBuiltins() {
	file := make([]C.char, 4096)
	C.halox_nvrtc_file(c.table, &file[0], C.size_t(len(file)))
	folder := filepath.Dir(C.GoString(&file[0]))
	found, _ := filepath.Glob(filepath.Join(folder, "libnvrtc-builtins.so*"))
	for _, path := range found {
		loads(path)
	}
}

// loads loads a library, and reports whether that succeeded.
func loads(name string) bool {
	if dl.Check(name) != nil {
		return false
	}
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return C.halox_nvrtc_load(cname) != 0
}

// Close frees the compiler; the library stays in the process. No other method may be called afterwards. Closing twice
// does nothing.
func (c *Compiler) Close() error {
	C.free(unsafe.Pointer(c.table))
	c.table = nil
	return nil
}

// Cancel makes compilations in progress fail, within about a second, and all later ones. An NVRTC before 12.8 finishes
// them.
func (c *Compiler) Cancel() { C.halox_nvrtc_cancel(c.table) }

// Version returns the CUDA version of the compiler.
func (c *Compiler) Version() (major, minor int, err error) {
	var a, b C.int
	rc := C.halox_nvrtc_version(c.table, &a, &b)
	return int(a), int(b), c.check("nvrtcVersion", rc)
}

// SupportedArchs returns the valid values of --gpu-architecture, as 10 * major + minor of the compute capability,
// ascending.
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

// check converts a result into an error, nil for success.
func (c *Compiler) check(call string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return c.failure(call, rc)
}

func (c *Compiler) failure(call string, rc C.int) *Error {
	return &Error{Call: call, Code: int(rc), Text: C.GoString(C.halox_nvrtc_error(c.table, rc))}
}

// program is one compilation.
type program struct {
	*Compiler
	source string // its name
	handle *C.halox_program
}

// Compile compiles the source with options such as --gpu-architecture=sm_90,
// -std=c++17 and --ptxas-options=-v. The error is an [*Error] with the log.
func (c *Compiler) Compile(src Source, options []string) (Result, error) {
	p, err := c.create(src)
	if err != nil {
		return Result{}, err
	}
	defer C.halox_nvrtc_destroy(c.table, p.handle)
	log, err := p.compile(options)
	if err != nil {
		return Result{Log: log}, err
	}
	image, err := p.image()
	return Result{Image: image, Log: log}, err
}

func (c *Compiler) create(src Source) (*program, error) {
	p := &program{Compiler: c, source: src.Name}
	unit := newStrings([]string{src.Text, src.Name})
	defer unit.free()
	texts, names := src.headers()
	headerTexts, headerNames := newStrings(texts), newStrings(names)
	defer headerTexts.free()
	defer headerNames.free()
	rc := C.halox_nvrtc_create(c.table, &p.handle, unit[0], unit[1], C.int(len(names)), headerTexts.first(),
		headerNames.first())
	return p, p.check("nvrtcCreateProgram", rc)
}

func (s Source) headers() (texts, names []string) {
	for _, h := range s.Headers {
		texts, names = append(texts, h.Text), append(names, h.Name)
	}
	return texts, names
}

// compile returns the log, which the error has too.
func (p *program) compile(options []string) (string, error) {
	args := newStrings(options)
	defer args.free()
	rc := C.halox_nvrtc_compile(p.table, p.handle, C.int(len(options)), args.first())
	log, err := p.output(C.HALOX_LOG, "nvrtcGetProgramLog")
	text := string(bytes.TrimRight(log, "\x00"))
	if rc == 0 {
		return text, err
	}
	e := p.failure("nvrtcCompileProgram", rc)
	e.Source, e.Log = p.source, text
	return text, e
}

// image returns the cubin, or the PTX for a virtual architecture, for which NVRTC makes no cubin.
func (p *program) image() ([]byte, error) {
	cubin, err := p.output(C.HALOX_CUBIN, "nvrtcGetCUBIN")
	if err != nil || len(cubin) > 0 {
		return cubin, err
	}
	ptx, err := p.output(C.HALOX_PTX, "nvrtcGetPTX")
	return bytes.TrimRight(ptx, "\x00"), err
}

func (p *program) output(which C.enum_halox_output, call string) ([]byte, error) {
	var size C.size_t
	if rc := C.halox_nvrtc_size(p.table, p.handle, which, &size); rc != 0 || size == 0 {
		return nil, p.check(call+"Size", rc)
	}
	out := make([]byte, size)
	rc := C.halox_nvrtc_bytes(p.table, p.handle, which, (*C.char)(unsafe.Pointer(&out[0])))
	return out, p.check(call, rc)
}

func (p *program) check(call string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	e := p.failure(call, rc)
	e.Source = p.source
	return e
}

// cStrings is a char *[] in C memory: cgo does not allow passing an array in Go memory that points to C strings.
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

// first returns the array as a C pointer, nil if it is empty.
func (s cStrings) first() **C.char { return unsafe.SliceData(s) }

func (s cStrings) free() {
	for _, text := range s {
		C.free(unsafe.Pointer(text))
	}
	C.free(unsafe.Pointer(s.first()))
}
