//go:build !linux

package mpi

func parentProgram() string { return "" }
