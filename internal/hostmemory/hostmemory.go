// Package hostmemory says how much of the host's memory a process may still take: what the kernel calls
// available, and what the limits of its cgroups leave.
package hostmemory

// Memory is the host's memory as one process sees it, in bytes.
type Memory struct {
	Free     int64  // what can be taken without swapping, and without a limit being reached
	Total    int64  // of the machine, or the least limit where that is less
	Resident int64  // what this process holds of memory that no file is behind
	Source   string // which number Free is, for the user
}
