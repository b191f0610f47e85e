// Package dl opens dynamic libraries at run time and calls their functions: with cgo by a C function, on Linux for
// amd64 and arm64 without cgo by purego. Elsewhere Open returns [ErrUnsupported].
package dl

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrUnsupported means that this build cannot open libraries.
var ErrUnsupported = errors.New("dynamic libraries need Linux on amd64 or arm64")

// Library is an open library. It is never closed.
type Library uintptr

// Open opens a library; path "" is the program with all its global symbols. See Check for truncated files.
func Open(path string, flags int) (Library, error) {
	if err := Check(path); err != nil {
		return 0, err
	}
	return open(path, flags)
}

// Check returns an error if the file at a path is a truncated ELF library: the system's loader would read beyond its
// end, and the process would be killed. It accepts all other files, which the loader rejects with an error if they are
// not libraries, and names without a slash, which the loader searches for.
func Check(path string) error {
	if !strings.Contains(path, "/") {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := f.ReadAt(magic, 0); err != nil || !bytes.Equal(magic, []byte(elf.ELFMAG)) {
		return nil
	}
	size := uint64(info.Size())
	library, err := elf.NewFile(f)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s is truncated: its headers end after its %d bytes", path, size)
	}
	if err != nil {
		return nil
	}
	for _, p := range library.Progs {
		if p.Off > size || p.Filesz > size-p.Off {
			return fmt.Errorf("%s is truncated: it has %d bytes, and a segment of %d begins at %d", path, size,
				p.Filesz, p.Off)
		}
	}
	return nil
}

// Args are the arguments of a call: integers, and addresses of memory outside of the Go heap. Functions with fewer
// parameters ignore the rest.
type Args [9]uintptr

// Table returns the addresses of the functions, and the names of missing ones.
func (l Library) Table(names []string) (at []uintptr, missing []string) {
	for _, name := range names {
		address := l.Symbol(name)
		if address == 0 {
			missing = append(missing, name)
		}
		at = append(at, address)
	}
	return at, missing
}
