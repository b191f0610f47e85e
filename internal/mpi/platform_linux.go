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

func unmapMemory(b []byte) { _ = unix.Munmap(b) } // fails for what is not mapped

// parentProgram returns the file of the program that started this process, "" where that
// cannot be seen.
func parentProgram() string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	if err != nil {
		return ""
	}
	return path
}

// signals is what the process does on each signal.
type signals [65]disposition

// disposition is struct sigaction of the kernel, with room for that of any architecture.
type disposition [64]byte

// maskBytes is the size of the kernel's set of signals.
const maskBytes = 8

// currentSignals returns what the process does now. SIGKILL and SIGSTOP, which nobody can
// take, are among it.
func currentSignals() (*signals, error) {
	all := &signals{}
	for n := 1; n < len(all); n++ {
		if err := signalAction(n, nil, &all[n]); err != nil {
			return nil, fmt.Errorf("mpi: handler of signal %d: %w", n, err)
		}
	}
	return all, nil
}

// restore gives the signals back that something took since. What Go does with a signal it
// wants to do on a stack of its own, which handlers of C libraries do not ask for.
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
			return fmt.Errorf("mpi: give signal %d back: %w", n, err)
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

// quiet keeps UCX, which MPI libraries load, from taking the signals of faults: Go makes
// panics of them. The environment is read while the library is loaded. What the user has set
// stays.
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
