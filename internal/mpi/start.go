package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/dl"
)

// Init starts MPI, unless the program has, and returns a separate communicator of all processes. It waits for the
// others, at most for the limit. The library must provide MPI_THREAD_MULTIPLE. It can be called once.
func (l *Library) Init(ctx context.Context, limit time.Duration) (*Comm, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	switch begun, err := l.begun(); {
	case err != nil:
		return nil, err
	case begun && l.main != nil:
		return nil, errors.New("mpi: Init was called before")
	case begun:
		return l.adopt(ctx, limit, l.handles.world)
	}
	m, err := l.start(ctx, limit)
	if err != nil {
		return nil, err
	}
	l.main = m
	world := &Comm{library: l, handle: l.handles.world}
	if err := world.returnErrors(); err != nil {
		return nil, err
	}
	return l.adopt(ctx, limit, l.handles.world)
}

// Lend returns a copy of a communicator of a program that has started MPI itself, with MPI_THREAD_MULTIPLE, and that
// ends MPI after Free. All processes of the communicator must call it, and it waits for them, at most for the limit.
// The handle is that of the library's interface: an int in MPICH, otherwise a pointer.
func (l *Library) Lend(ctx context.Context, limit time.Duration, comm Handle) (*Comm, error) {
	begun, err := l.begun()
	if err != nil {
		return nil, err
	}
	if !begun {
		return nil, fmt.Errorf("mpi: a communicator was lent, but %s has not been started", l)
	}
	if comm == 0 || comm == l.handles.null {
		return nil, errors.New("mpi: the communicator must not be MPI_COMM_NULL")
	}
	return l.adopt(ctx, limit, comm)
}

// begun reports whether MPI runs. It is an error if it has ended.
func (l *Library) begun() (bool, error) {
	over, err := l.asks(fFinalized)
	if err != nil {
		return false, err
	}
	if over != 0 {
		return false, fmt.Errorf("mpi: %s has ended: it cannot be started again", l)
	}
	begun, err := l.asks(fInitialized)
	return begun != 0, err
}

// adopt copies a communicator while MPI runs.
func (l *Library) adopt(ctx context.Context, limit time.Duration, comm Handle) (*Comm, error) {
	provided, err := l.asks(fQueryThread)
	if err != nil {
		return nil, err
	}
	if err := l.manyThreads(provided); err != nil {
		return nil, err
	}
	return (&Comm{library: l, handle: comm}).Dup(ctx, limit)
}

// Finalize ends MPI if Init has started it, and waits for the other processes, at most for the limit. No request may be
// pending. After the failure of a process, call Abort instead.
func (l *Library) Finalize(ctx context.Context, limit time.Duration) error {
	l.lock.Lock()
	m := l.main
	l.main = nil
	l.lock.Unlock()
	if m == nil {
		return nil
	}
	return m.finish(ctx, limit)
}

// start calls MPI_Init_thread on a separate thread, and waits for it. If it does not return within the limit, as when a
// link between hosts is down, the thread is abandoned and this process cannot use MPI.
func (l *Library) start(ctx context.Context, limit time.Duration) (*mainThread, error) {
	m := &mainThread{end: make(chan struct{}), ended: make(chan error, 1)}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := l.initThread()
		started <- err
		if err != nil {
			return
		}
		<-m.end
		m.ended <- l.finalize()
	}()
	if err := await(ctx, limit, started, "MPI_Init_thread", "for the other processes"); err != nil {
		return nil, err
	}
	return m, nil
}

// finish makes the thread end MPI.
func (m *mainThread) finish(ctx context.Context, limit time.Duration) error {
	close(m.end)
	return await(ctx, limit, m.ended, "MPI_Finalize", "for the other processes")
}

// initThread starts MPI and restores the signal handlers.
func (l *Library) initThread() error {
	before, err := currentSignals()
	if err != nil {
		return err
	}
	provided, err := l.asks(fInitThread, 0, 0, uintptr(l.handles.multiple))
	if err = errors.Join(err, before.restore()); err != nil {
		return err
	}
	return l.manyThreads(provided)
}

// manyThreads rejects a library without MPI_THREAD_MULTIPLE.
func (l *Library) manyThreads(provided int) error {
	if provided < int(l.handles.multiple) {
		return fmt.Errorf("%s: thread level must be MPI_THREAD_MULTIPLE (%[3]d), got %[2]d", l, provided,
			l.handles.multiple)
	}
	return nil
}

func (l *Library) finalize() error {
	before, err := currentSignals()
	if err != nil {
		return err
	}
	if err := l.call(fFinalize, "", dl.Args{}); err != nil {
		return err
	}
	return errors.Join(l.runHooks(), before.restore())
}

// runHooks calls the library's exit hooks, which C runs in exit and Go does not. MPICH 5 disconnects from its launcher
// there: if a process ends without that, the launcher treats it as crashed, and kills the other processes while they
// end.
func (l *Library) runHooks() error {
	if !strings.HasPrefix(l.Version, "MPICH") {
		return nil
	}
	functions, err := l.finiFunctions()
	for _, function := range slices.Backward(functions) {
		dl.Call(function, dl.Args{})
	}
	return err
}

// linkMap is struct link_map of the loader, and dynamic one entry of a dynamic section.
type (
	linkMap struct {
		base    unsafe.Pointer // address of the library
		_       uintptr        // its name
		entries *[1 << 16]dynamic
	}
	dynamic struct{ tag, value uintptr }
)

const (
	infoLinkMap  = 2  // RTLD_DI_LINKMAP
	tagEnd       = 0  // DT_NULL
	tagFini      = 26 // DT_FINI_ARRAY, relative to the base
	tagFiniBytes = 28 // DT_FINI_ARRAYSZ
)

// finiFunctions returns the functions that the loader calls before it unloads the library.
func (l *Library) finiFunctions() (functions []uintptr, err error) {
	information := l.loaded.Symbol("dlinfo")
	err = withMemory(8, func(m []byte) error {
		if information == 0 || dl.Call(information, dl.Args{uintptr(l.loaded), infoLinkMap, addressOf(m)}) != 0 {
			return errors.New("mpi: dlinfo failed")
		}
		loaded := *(**linkMap)(unsafe.Pointer(&m[0]))
		var array unsafe.Pointer
		var bytes uintptr
		for _, d := range loaded.entries {
			switch d.tag {
			case tagFini:
				array = unsafe.Add(loaded.base, d.value)
			case tagFiniBytes:
				bytes = d.value
			case tagEnd:
				functions = slices.Clone(unsafe.Slice((*uintptr)(array), bytes/8))
				return nil
			}
		}
		return nil
	})
	return functions, err
}
