//go:build !linux

package mpi

func mapMemory(int) ([]byte, error) { return nil, ErrUnsupported }
func unmapMemory([]byte)            {}

func parentProgram() string { return "" }

type signals struct{}

func currentSignals() (*signals, error) { return &signals{}, nil }
func (*signals) restore() error         { return nil }
func quiet() error                      { return nil }
