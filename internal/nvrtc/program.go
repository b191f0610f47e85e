//go:build linux && cgo

package nvrtc

// #include <stdlib.h>
// #include "table.h"
import "C"

import (
	"bytes"
	"unsafe"
)

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
	rc := C.halox_nvrtc_create(c.table, &p.handle, unit[0], unit[1], C.int(len(names)), headerTexts.first(), headerNames.first())
	return p, p.check("nvrtcCreateProgram", rc)
}

func (s Source) headers() (texts, names []string) {
	for _, h := range s.Headers {
		texts, names = append(texts, h.Text), append(names, h.Name)
	}
	return texts, names
}

// compile gives the log, which the error has too.
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

// image is the cubin, or the PTX when there is no cubin: NVRTC makes none for
// a virtual architecture.
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
