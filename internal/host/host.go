// Package host reports the resources that a process may use: memory, from the kernel's estimate of available memory and
// the limits of its cgroups, and cores, from its affinity and the CPU quota of its cgroups.
package host

// Memory is the host's memory as one process sees it, in bytes.
type Memory struct {
	Free     int64  // what can be taken without swapping, and without a limit being reached
	Total    int64  // of the machine, or the least limit where that is less
	Resident int64  // what this process holds of memory that no file is behind
	Source   string // which number Free is, for the user
}
