// Package files writes files completely or not at all, and reads only regular files up to a size.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// NoWait is a flag for os.OpenFile: opening a pipe that no process writes to does not wait.
const NoWait = syscall.O_NONBLOCK

// Open opens the regular file at path, or at the end of a symbolic link, for reading. A folder, a device, a pipe or a
// socket is an error; Open does not block on them.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := CheckRegular(info); err != nil { // before it is opened: opening a device may start it
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.OpenFile(path, os.O_RDONLY|NoWait, 0)
}

// Read returns the text of the regular file at path, without a byte order mark. A file of more than most bytes is an
// error, and so is a file that Open rejects.
func Read(path string, most int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := ReadAll(file, most)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// ReadAll returns the rest of a regular file. More than most bytes are an error.
func ReadAll(file *os.File, most int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, tooLarge(most)
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	n, err := data.ReadFrom(io.LimitReader(file, most+1)) // it may have grown
	if err == nil && n > most {
		err = tooLarge(most)
	}
	return data.Bytes(), err
}

func tooLarge(most int64) error { return fmt.Errorf("must have at most %d bytes", most) }

// CheckRegular returns an error that says what a file is, if not a regular one.
func CheckRegular(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return errors.New("it is " + Kind(info.Mode()) + ", not a regular file")
}

// Kind names the kind of file that has a mode.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
