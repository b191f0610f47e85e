package mpi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/halox/halox/internal/dl"
)

// Library is an MPI library in this process. It is never unloaded, since it has threads and exit hooks.
type Library struct {
	Path    string // name by which it was opened; "the program" if that has it
	Family  Family
	Version string // version text of the library, one line

	handles handles
	loaded  dl.Library
	at      [functions]uintptr
	frames  frames
	most    int // maximum bytes of one call

	waits waits // for events of MPI
	idle  waits // waits of threads without work, see Linger

	lock sync.Mutex
	main *mainThread // nil before Init, and if the program has started MPI itself
}

// mainThread is the thread that starts MPI and ends it: MPI requires one thread for both.
type mainThread struct {
	end   chan struct{} // closed to end MPI
	ended chan error    // result of MPI_Finalize
}

// mostBytes is the maximum of one call: counts are ints, and not all libraries have MPI_Isend_c.
const mostBytes = 1 << 30

// A function is an index of the table of addresses.
type function int

const (
	fInitThread function = iota
	fInitialized
	fFinalized
	fQueryThread
	fFinalize
	fAbort
	fCommIdup
	fCommFree
	fCommSize
	fCommRank
	fCommSplit
	fCommSetErrhandler
	fCommGetAttr
	fIsend
	fIrecv
	fTest
	fCancel
	fIbarrier
	fIbcast
	fIallgather
	fIallgatherv
	fErrorString
	fGetLibraryVersion
	fGetProcessorName
	functions
)

var functionNames = [functions]string{
	"MPI_Init_thread", "MPI_Initialized", "MPI_Finalized", "MPI_Query_thread", "MPI_Finalize", "MPI_Abort",
	"MPI_Comm_idup", "MPI_Comm_free", "MPI_Comm_size", "MPI_Comm_rank", "MPI_Comm_split",
	"MPI_Comm_set_errhandler", "MPI_Comm_get_attr",
	"MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Cancel",
	"MPI_Ibarrier", "MPI_Ibcast", "MPI_Iallgather", "MPI_Iallgatherv",
	"MPI_Error_string", "MPI_Get_library_version", "MPI_Get_processor_name",
}

// Open opens the library: the one that the process has already loaded, otherwise the one that override names, otherwise
// the first one found: next to the launcher, then in the loader's path. The error is a *NotFoundError, ErrUnsupported,
// or describes the problem with the library that override names.
//
// It does not start MPI: see Init and Lend.
func Open(override string, launcher Launcher) (*Library, error) {
	if _, err := dl.Open("", dl.Now); errors.Is(err, dl.ErrUnsupported) {
		return nil, ErrUnsupported
	}
	if l := inProcess(); l != nil {
		return l, nil
	}
	if override != "" {
		l, err := openOne(override)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", Variable, override, err)
		}
		return l, nil
	}
	var tried []Attempt
	for _, path := range candidates(launcher) {
		l, err := openOne(path)
		if err == nil {
			return l, nil
		}
		tried = append(tried, Attempt{path, err.Error()})
	}
	return nil, &NotFoundError{tried}
}

// inProcess returns the library that the program is linked with, or has loaded by one of the usual names; nil if there
// is none.
func inProcess() *Library {
	for _, name := range append([]string{""}, filesOf(Unknown)...) {
		flags := dl.Now
		if name != "" {
			flags |= dl.Loaded
		}
		library, err := dl.Open(name, flags)
		if err != nil {
			continue
		}
		if l, err := newLibrary(cmp.Or(name, theProgram), library); err == nil {
			return l
		}
	}
	return nil
}

// openOne loads a library, and restores the signal handlers.
func openOne(path string) (*Library, error) {
	if err := quiet(); err != nil {
		return nil, err
	}
	before, err := currentSignals()
	if err != nil {
		return nil, err
	}
	library, err := dl.Open(path, dl.Now)
	if err := before.restore(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	l, err := newLibrary(path, library)
	if err != nil {
		return nil, err
	}
	if l.Family == OpenMPI { // its plugins need its symbols to be global
		if _, err := dl.Open(path, dl.Now|dl.Global); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// newLibrary finds the functions and the family of a loaded library.
func newLibrary(path string, library dl.Library) (*Library, error) {
	l := &Library{Path: path, loaded: library, most: mostBytes}
	at, missing := library.Table(functionNames[:])
	if len(missing) > 0 {
		return nil, fmt.Errorf("must be a library of MPI 3 or newer, lacks %s", strings.Join(missing, ", "))
	}
	copy(l.at[:], at)
	if err := l.findFamily(library); err != nil {
		return nil, err
	}
	version, err := l.text(fGetLibraryVersion)
	if err != nil {
		return nil, err
	}
	l.Version = oneLine(version)
	return l, nil
}

// findFamily finds the family, as mpi4py does: the standard ABI has a version, Open MPI has variables, and all others
// have MPICH's ABI.
func (l *Library) findFamily(library dl.Library) error {
	if major, err := l.abiVersion(library); err != nil {
		return err
	} else if major > 0 {
		l.Family, l.handles = Standard, standardHandles
		return nil
	}
	if library.Symbol("ompi_mpi_comm_self") == 0 {
		l.Family, l.handles = MPICH, mpichHandles
		return nil
	}
	l.Family, l.handles = OpenMPI, openMPIHandles(library.Symbol)
	if !l.handles.complete() {
		return fmt.Errorf("is an Open MPI without some of its variables: %+v", l.handles)
	}
	return nil
}

// abiVersion returns the major version of the standard ABI of a library, 0 if it has another ABI.
func (l *Library) abiVersion(library dl.Library) (int32, error) {
	at := library.Symbol("MPI_Abi_get_version")
	if at == 0 {
		return 0, nil
	}
	f, err := l.frames.take()
	if err != nil {
		return 0, err
	}
	defer l.frames.give(f)
	f.put(0)
	if dl.Call(at, dl.Args{f.request(), f.flag()}) != 0 {
		return 0, nil
	}
	return f.int32At(0), nil
}

// maxText is the maximum length of a text from a library: MPI_MAX_LIBRARY_VERSION_STRING of MPICH.
const maxText = 8192

// text calls a function that writes a text and its length.
func (l *Library) text(fn function, first ...uintptr) (string, error) {
	m, err := NewMemory(maxText + 8)
	if err != nil {
		return "", err
	}
	defer m.Free()
	a := dl.Args{}
	copy(a[:], append(first, addressOf(m.Bytes), addressOf(m.Bytes)+maxText))
	if code := dl.Call(l.at[fn], a); code != 0 {
		return "", fmt.Errorf("%s: %d", functionNames[fn], code)
	}
	text, _, _ := bytes.Cut(m.Bytes[:maxText], []byte{0})
	return string(text), nil
}

// oneLine returns the first line of a text, with single spaces between words.
func oneLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.Join(strings.Fields(first), " ")
}

// theProgram is the name of a library that the program is linked with.
const theProgram = "the program"

// File returns the name by which another process can open the library; "" if only this program has it.
func (l *Library) File() string {
	if l.Path == theProgram {
		return ""
	}
	return l.Path
}

// String returns the name of the library for messages.
func (l *Library) String() string { return fmt.Sprintf("%s (%s)", l.Path, l.Version) }

// call calls a function and converts its result into an error.
func (l *Library) call(fn function, with string, a dl.Args) error {
	if code := dl.Call(l.at[fn], a); code != 0 {
		return l.failure(fn, with, code)
	}
	return nil
}

func (l *Library) failure(fn function, with string, code int32) error {
	text, err := l.text(fErrorString, uintptr(code))
	if err != nil {
		text = "no description"
	}
	return &Error{Call: functionNames[fn], With: with, Code: int(code), Text: oneLine(text)}
}

// asks calls a function that writes one int, with the given arguments before it.
func (l *Library) asks(fn function, first ...uintptr) (int, error) {
	f, err := l.frames.take()
	if err != nil {
		return 0, err
	}
	defer l.frames.give(f)
	f.put(0)
	a := dl.Args{}
	copy(a[:], append(first, f.request()))
	err = l.call(fn, "", a)
	return int(f.int32At(0)), err
}

// names are the files of each family, the newest interface last: if an installation has two, all processes must use the
// same.
var names = []struct {
	family Family
	files  []string
}{
	{MPICH, []string{"libmpi.so.12", "libmpich.so.12"}},
	{OpenMPI, []string{"libmpi.so.40"}},
	{Standard, []string{"libmpi_abi.so.1", "libmpi_abi.so.0"}},
}

// candidates returns the libraries to try, in this order: those next to the launcher, then names for the loader to
// find; for a launcher of one family, only that family and the standard ABI, which any may have.
func candidates(launcher Launcher) (paths []string) {
	files := filesOf(launcher.Family)
	for _, folder := range besideLauncher() {
		for _, file := range files {
			path := filepath.Join(folder, file)
			if _, err := os.Stat(path); err == nil && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return append(paths, files...)
}

func filesOf(f Family) (files []string) {
	for _, n := range names {
		if f == Unknown || f == n.family || n.family == Standard {
			files = append(files, n.files...)
		}
	}
	return files
}

// besideLauncher returns the folders where the library of a launcher may be installed: for the process that started
// this one, and for the first launcher in the user's PATH.
func besideLauncher() (folders []string) {
	programs := []string{parentProgram()}
	for _, name := range []string{"mpiexec", "mpirun"} {
		if path, err := exec.LookPath(name); err == nil {
			programs = append(programs, path)
		}
	}
	for _, program := range programs {
		if program == "" {
			continue
		}
		for _, path := range []string{program, resolved(program)} {
			root := filepath.Dir(filepath.Dir(path))
			for _, lib := range []string{"lib", "lib64", "lib/release"} {
				if folder := filepath.Join(root, lib); !slices.Contains(folders, folder) {
					folders = append(folders, folder)
				}
			}
		}
	}
	return folders
}

// resolved resolves symbolic links.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// Suits rejects a library that would end the process under this launcher: MPICH supports mpirun of Open MPI only if it
// was built with PMIx and this is requested.
func (l Launcher) Suits(library *Library) error {
	_, told := os.LookupEnv("MPIR_CVAR_PMI_VERSION")
	if l.Family != OpenMPI || told || !strings.HasPrefix(library.Version, "MPICH") {
		return nil
	}
	return fmt.Errorf("%s started this process, which %s does not support; use the mpiexec of that library, or name "+
		"the library of the launcher in %s", l.Name, library, Variable)
}

// The functions that report whether a library supports GPU addresses: of MPICH and of Open MPI. MPICH has both.
const (
	queryGPU  = "MPIX_GPU_query_support"
	queryCUDA = "MPIX_Query_cuda_support"
)

// ofCUDA is MPIX_GPU_SUPPORT_CUDA.
const ofCUDA = 0

// SaysGPU returns whether the library reports support for messages in the memory of CUDA devices, and the name of the
// function that does, or that there is none. Libraries have been wrong both ways. MPI must run.
func (l *Library) SaysGPU() (says bool, by string, err error) {
	if at := l.loaded.Symbol(queryGPU); at != 0 {
		f, err := l.frames.take()
		if err != nil {
			return false, queryGPU, err
		}
		defer l.frames.give(f)
		f.put(0)
		if code := dl.Call(at, dl.Args{ofCUDA, f.request()}); code == 0 && f.int32At(0) != 0 {
			return true, queryGPU, nil
		}
	}
	if at := l.loaded.Symbol(queryCUDA); at != 0 {
		return dl.Call(at, dl.Args{}) == 1, queryCUDA, nil
	}
	return false, queryGPU + " and " + queryCUDA, nil
}
