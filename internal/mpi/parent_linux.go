package mpi

import (
	"fmt"
	"os"
)

// parentProgram returns the file of the program that started this process, "" where that
// cannot be seen.
func parentProgram() string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	if err != nil {
		return ""
	}
	return path
}
