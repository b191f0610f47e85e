//go:build !unix

package mpi

func mapMemory(int) ([]byte, error) { return nil, ErrUnsupported }
func unmapMemory([]byte)            {}
