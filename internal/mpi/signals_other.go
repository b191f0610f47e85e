//go:build !linux

package mpi

type signals struct{}

func currentSignals() (*signals, error) { return &signals{}, nil }
func (*signals) restore() error         { return nil }
func quiet() error                      { return nil }
