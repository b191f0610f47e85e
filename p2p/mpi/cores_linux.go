package mpi

import "github.com/prometheus/procfs"

// hostCores returns how many cores this host has, whatever this process is bound to; ok is false where that is not
// known.
func hostCores() (n int, ok bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, false
	}
	all, err := fs.CPUInfo()
	return len(all), err == nil
}
