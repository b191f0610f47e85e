package mpi

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapMemory(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapMemory(b []byte) { _ = unix.Munmap(b) } // fails for memory that is not mapped

// parentProgram returns the file of the program that started this process, "" if it is not readable.
func parentProgram() string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	if err != nil {
		return ""
	}
	return path
}

// signals are the actions of the process for each signal.
type signals [65]disposition

// disposition is struct sigaction of the kernel, with room for that of any architecture.
type disposition [64]byte

// maskBytes is the size of the kernel's set of signals.
const maskBytes = 8

// currentSignals returns the current signal actions of the process, including SIGKILL and SIGSTOP, which
// cannot be caught.
func currentSignals() (*signals, error) {
	all := &signals{}
	for n := 1; n < len(all); n++ {
		if err := signalAction(n, nil, &all[n]); err != nil {
			return nil, fmt.Errorf("mpi: handler of signal %d: %w", n, err)
		}
	}
	return all, nil
}

// restore restores the signal actions that changed since. Go requires handlers to run on a separate stack, which
// handlers of C libraries do not request.
func (s *signals) restore() error {
	now, err := currentSignals()
	if err != nil {
		return err
	}
	for n := 1; n < len(s); n++ {
		if s[n] == now[n] {
			continue
		}
		if err := signalAction(n, &s[n], nil); err != nil {
			return fmt.Errorf("mpi: restore the handler of signal %d: %w", n, err)
		}
	}
	return nil
}

func signalAction(n int, to, was *disposition) error {
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(to)),
		uintptr(unsafe.Pointer(was)), maskBytes, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// quiet prevents UCX, which MPI libraries load, from handling fault signals, which Go converts into panics. UCX reads
// the environment while the library is loaded. Variables that the user has set stay.
func quiet() error {
	for _, variable := range []string{"UCX_ERROR_SIGNALS", "UCX_DEBUG_SIGNO"} {
		if _, set := os.LookupEnv(variable); set {
			continue
		}
		if err := os.Setenv(variable, ""); err != nil {
			return fmt.Errorf("mpi: set %s: %w", variable, err)
		}
	}
	return nil
}
