//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// NoWait is a flag for os.OpenFile: to open a pipe that nobody writes to does not wait.
const NoWait = syscall.O_NONBLOCK

// syncFolder brings the names in a folder to the disk, where the file system can.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return nil // it may be written but not read
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
