package main

// The exit codes.
const (
	exitFailed      = 1
	exitInterrupted = 130 // as a shell reports a program ended by Ctrl-C
)
