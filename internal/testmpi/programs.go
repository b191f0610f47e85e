package testmpi

import (
	"fmt"
	"os"
	"testing"
)

// Variables of a process that was started to carry out a program.
const (
	programVariable = "HALOX_TEST_PROGRAM"
	runVariable     = "HALOX_TEST_RUN" // by which all processes of one launch are found again
)

// IsProgram reports whether Run has started this process.
func IsProgram() bool { return os.Getenv(programVariable) != "" }

// Main is the TestMain of a package with programs. In a process that Run has started it
// carries out the program and ends; an error is printed, and the exit code is 1.
func Main(m *testing.M, programs map[string]func() error) {
	name := os.Getenv(programVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	program, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no program %q\n", name)
		os.Exit(2)
	}
	if err := program(); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
