package results

import (
	"fmt"

	"github.com/halox/halox/internal/files"
)

// CheckWritable reports whether a file of this package can be written at path,
// by beginning one. What is there stays as it is, and nothing new is left.
//
// The files of this package are there whole or not at all. Where path is a symbolic link,
// the file that it leads to is written; a file that is there is replaced and keeps its mode;
// a folder, a device, a pipe or a socket is an error.
func CheckWritable(path string) error {
	if err := files.CheckWritable(path); err != nil {
		return fmt.Errorf("results: %s cannot be written: %w", path, err)
	}
	return nil
}
