// Package cudafake builds a CUDA driver that needs no GPU, for tests of code that calls the driver through
// internal/cuda.
//
// Its device memory is host memory, work on a stream is done before the call returns, and launches are recorded instead
// of run, unless [Runs] is set. Captured work is done when its graph is launched, in the most unusual order that its
// dependencies allow. It checks conditions that a real driver may not check: every stream, event, kernel and memory
// must belong to the calling thread's current context (or to a peer that it may access), host memory in a copy must be
// pinned, and a copy to a peer is not captured.
//
// [Build] returns the library to open with cuda.Open, and [Inspect] the controls of the same library.
package cudafake

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/halox/halox/internal/cache"
)

//go:embed testdata
var sources embed.FS

// Flags for [Build]. Devices has its own function.
const (
	// Runs makes a driver with asynchronous streams, like those of a GPU, that runs the kernels of images that are
	// shared objects, see package testdevices.
	Runs = "-DFAKE_RUNS"

	// Apart makes a driver whose devices allow no peer access.
	Apart = "-DFAKE_APART"

	// WithoutIPC makes a driver that opens no memory of other processes, as in a container with its own namespaces.
	WithoutIPC = "-DFAKE_WITHOUT_IPC"

	// LyingIPC makes a driver that opens such memory, and does not pass on what is written there.
	LyingIPC = "-DFAKE_LYING_IPC"

	// MIG makes devices that are MIG instances.
	MIG = "-DFAKE_MIG"

	// WithoutPeer omits cuCtxEnablePeerAccess and cuMemcpyPeerAsync.
	WithoutPeer = "-DFAKE_WITHOUT_PEER"
)

// Stuck is the flag for a driver with a function that never returns.
func Stuck(call string) string { return fmt.Sprintf("-DFAKE_STUCK=%q", call) }

// Devices is the flag for a driver with n devices, 0 to 8, instead of 2.
func Devices(n int) string { return fmt.Sprintf("-DFAKE_DEVICES=%d", n) }

// Multiprocessors is the flag for devices with n multiprocessors instead of 4.
func Multiprocessors(n int) string { return fmt.Sprintf("-DFAKE_MULTIPROCESSORS=%d", n) }

// Shared is the flag for devices with n bytes of shared memory per thread block instead of 227 KiB.
func Shared(bytes int) string { return fmt.Sprintf("-DFAKE_SHARED=%d", bytes) }

// Memory is the flag for devices with n bytes of free memory at first instead of 5 GiB.
func Memory(bytes int) string { return fmt.Sprintf("-DFAKE_MEMORY=%d", bytes) }

// Build compiles the fake driver with the given flags of the C compiler and returns the library's path. Every call
// makes a driver with separate state. The test is skipped when there is no C compiler.
func Build(tb testing.TB, flags ...string) string {
	tb.Helper()
	bytes, err := built(Compiler(tb), flags)
	library := filepath.Join(tb.TempDir(), "libfakecuda.so")
	if err == nil {
		err = os.WriteFile(library, bytes, 0o755)
	}
	if err != nil {
		tb.Fatalf("build the fake CUDA driver: %v", err)
	}
	return library
}

// drivers are the drivers that this process has built, by flags. Each file that a driver is loaded from has separate
// state.
var drivers sync.Map

func built(cc, flags []string) ([]byte, error) {
	build, _ := drivers.LoadOrStore(fmt.Sprintf("%q %q", cc, flags), sync.OnceValues(func() ([]byte, error) {
		args := slices.Concat(cc[1:], []string{"-shared", "-fPIC", "-O1", "-Wall", "-pthread", "-ldl"}, flags)
		kept, keep := entry(cc[0], args)
		if keep {
			if library, err := kept.Read(); err == nil {
				return library, nil
			}
		}
		library, err := build(cc[0], args)
		if err == nil && keep {
			_ = kept.Write(library) // otherwise the next process builds it again
		}
		return library, err
	}))
	return build.(func() ([]byte, error))()
}

// build compiles and links the sources.
func build(cc string, args []string) (library []byte, err error) {
	dir, err := os.MkdirTemp("", "fakecuda-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "libfakecuda.so")
	units, err := unpack(dir)
	if err != nil {
		return nil, err
	}
	if out, err := exec.Command(cc, slices.Concat(args, []string{"-o", file}, units)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(file)
}

// entry is the file of a library for other processes, in the folder .cache of the module of the test. Its name depends
// on everything that determines the build. Without a module nothing is stored.
func entry(cc string, args []string) (kept cache.Entry, ok bool) {
	root, err := ModuleRoot()
	if err != nil {
		return kept, false
	}
	version, failed := exec.Command(cc, "--version").Output()
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s %q\n", runtime.GOARCH, cc, version, args)
	err = errors.Join(failed, fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(name)
		fmt.Fprintf(h, "%q %q\n", name, text)
		return err
	}))
	folder := cache.At(filepath.Join(root, ".cache")).Below("drivers")
	return folder.Hashed("", h.Sum(nil)[:12], ".so"), err == nil
}

// ModuleRoot returns the folder of the module that a test runs in. It is an error if there is none.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("there is no go.mod in the folder of the test, nor above")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// Compiler returns the C compiler of this machine: CC, or cc. It skips the test unless the compiler builds a library.
func Compiler(tb testing.TB) []string {
	tb.Helper()
	cc, err := compiler()
	if err != nil {
		tb.Skipf("SKIPPED: no C compiler works here: %v", err)
	}
	return cc
}

var compiler = sync.OnceValues(func() (cc []string, err error) {
	if cc = strings.Fields(os.Getenv("CC")); len(cc) == 0 {
		cc = []string{"cc"}
	}
	dir, err := os.MkdirTemp("", "cc-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"-shared", "-fPIC", "-x", "c", "-o", filepath.Join(dir, "lib.so"), "-"}
	c := exec.Command(cc[0], slices.Concat(cc[1:], args)...)
	c.Stdin = strings.NewReader("#include <stdlib.h>\n")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", cc, err, out)
	}
	return cc, nil
})

// unpack writes the sources to dir and returns the files to compile.
func unpack(dir string) (units []string, err error) {
	names, err := fs.Glob(sources, "testdata/*.[ch]")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := sources.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
		if filepath.Ext(file) == ".c" {
			units = append(units, file)
		}
	}
	return units, nil
}

// Image is a module for the fake driver that holds the given kernels, each
// with the size of its argument in bytes.
func Image(argBytes map[string]int) []byte {
	var b strings.Builder
	b.WriteString("fake\n")
	for name, size := range argBytes {
		fmt.Fprintf(&b, "%s %d\n", name, size)
	}
	return []byte(b.String())
}
