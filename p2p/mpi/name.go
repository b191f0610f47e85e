package mpi

import "fmt"

// nameOf names a process as errors do.
func nameOf(rank int, hosts []string) string {
	return fmt.Sprintf("rank %d on host %s", rank, hosts[rank])
}
