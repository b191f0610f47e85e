// Package host says what a process may take of its host: memory, by what the kernel calls available and by the limits
// of its cgroups, and cores, by its affinity and by the CPU quota of its cgroups.
package host

// Memory is the host's memory as one process sees it, in bytes.
type Memory struct {
	Free     int64  // what can be taken without swapping, and without a limit being reached
	Total    int64  // of the machine, or the least limit where that is less
	Resident int64  // what this process holds of memory that no file is behind
	Source   string // which number Free is, for the user
}
