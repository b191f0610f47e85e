package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/halox/halox/internal/files"
)

// An Entry is a file of the cache.
type Entry struct {
	folder Folder
	name   string
}

// Path returns the name of the entry's file, "" for nowhere.
func (e Entry) Path() string {
	if e.folder.path == "" {
		return ""
	}
	return filepath.Join(e.folder.path, e.name)
}

// Read returns what the entry holds. An error says why it counts as absent: it is not
// there (fs.ErrNotExist); it is not a regular file, but a link, a pipe or a device; it is
// larger than MaxBytes; or the file or its folder belongs to neither this user nor the
// superuser, or may be written by more than its owner. Read waits for none of these.
func (e Entry) Read() ([]byte, error) {
	root, err := e.folder.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := readIn(root, e.name)
	if err != nil {
		return nil, e.unused(err)
	}
	return data, nil
}

func readIn(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err == nil {
		err = checkFile(info) // to open a device may set it going
	}
	if err != nil {
		return nil, err
	}
	file, err := root.OpenFile(name, os.O_RDONLY|files.NoWait, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err == nil {
		err = checkFile(info)
	}
	if err != nil {
		return nil, err
	}
	return files.ReadAll(file, MaxBytes)
}

// Write makes the entry hold the parts, one after another. Whoever reads it, also after
// this process was killed, finds all of them or what was there before. Everything except a
// folder is replaced.
func (e Entry) Write(parts ...[]byte) error {
	if err := e.folder.make(); err != nil {
		return err
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	err := errors.New("it is too large")
	if size <= MaxBytes {
		err = files.Replace(e.Path(), 0o644, parts...)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the cache's %s is not kept for the next run: %w", e.Path(), err)
	if !errors.Is(err, fs.ErrPermission) { // which Folder.Keeps says before
		lost.CompareAndSwap(nil, &err)
	}
	return err
}

// lost is the first error of Write that Lost has not returned.
var lost atomic.Pointer[error]

// Lost returns the first error since its last call for which something was not kept, as on a full disk, nil if all
// was: callers of Write go on without, so that who runs the command is told once, at its end.
func Lost() error {
	if err := lost.Swap(nil); err != nil {
		return *err
	}
	return nil
}

func (e Entry) unused(err error) error {
	return fmt.Errorf("the cache's %s is not used: %w", e.Path(), err)
}

// Entry returns the entry of that name, a file's without a folder, whether it is there or
// not.
func (f Folder) Entry(name string) Entry { return Entry{f, name} }
