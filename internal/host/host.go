// Package host reports the resources that a process may use: memory, from the kernel's estimate of available memory and
// the limits of its cgroups, and cores, from its affinity and the CPU quota of its cgroups.
package host

// Memory is the host's memory as one process sees it, in bytes.
type Memory struct {
	Free     int64  // available without swapping and without reaching a limit
	Total    int64  // of the machine, or the smallest limit if that is less
	Resident int64  // anonymous memory of this process
	Source   string // source of Free, for the user
}
