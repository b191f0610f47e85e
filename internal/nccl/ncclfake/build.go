// Package ncclfake builds an NCCL library that needs no GPU, for tests of code that calls NCCL through internal/nccl.
//
// Its device memory is host memory, as in package cudafake. Messages between processes are sent through sockets of the
// host, in order, and a message counts as queued when it has arrived. The variable NCCLFAKE of a process makes it hang,
// fail or corrupt messages: see nccl.c.
package ncclfake

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
)

//go:embed testdata/nccl.c
var source []byte

// Build compiles the library and returns its path. It skips the test if there is no C compiler.
func Build(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	file, library := filepath.Join(dir, "nccl.c"), filepath.Join(dir, "libnccl.so.2")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		tb.Fatal(err)
	}
	cc := cudafake.Compiler(tb)
	args := []string{"-shared", "-fPIC", "-O1", "-Wall", "-pthread", "-fvisibility=hidden", "-o", library, file}
	if out, err := exec.Command(cc[0], slices.Concat(cc[1:], args)...).CombinedOutput(); err != nil {
		tb.Fatalf("build the NCCL library: %v\n%s", err, out)
	}
	return library
}
