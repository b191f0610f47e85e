package cache

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/halox/halox/internal/files"
)

// An Entry is a file of the cache.
type Entry struct {
	folder Folder
	name   string
	alike  string // pattern of the names of similar entries, whose number Write limits; "" for none
}

// Path returns the name of the entry's file, "" for nowhere.
func (e Entry) Path() string {
	if e.folder.path == "" {
		return ""
	}
	return filepath.Join(e.folder.path, e.name)
}

// Read returns the content of the entry. An error means that the entry counts as absent: it does not exist
// (fs.ErrNotExist); it is not a regular file, but a link, a pipe or a device; it is larger than MaxBytes; or the file
// or its folder belongs to neither this user nor the superuser, or is writable by others. Read never blocks on any of
// these.
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
		err = checkFile(info) // opening a device may start it
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

// Write replaces the content of the entry by the parts, one after another. Readers find either all of them or the old
// content, even if this process is killed. Everything except a folder is replaced. If the folder has more than MaxAlike
// similar entries, see Hashed, the oldest are removed.
func (e Entry) Write(parts ...[]byte) error {
	if err := e.folder.make(); err != nil {
		return err
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	err := errors.New("must be smaller")
	if size <= MaxBytes {
		err = files.Replace(e.Path(), 0o644, parts...)
	}
	if err == nil {
		e.bound()
		return nil
	}
	err = fmt.Errorf("the cache's %s is not kept for the next run: %w", e.Path(), err)
	if !errors.Is(err, fs.ErrPermission) { // which Folder.Keeps reports earlier
		lost.CompareAndSwap(nil, &err)
	}
	return err
}

// MaxAlike is the maximum number of entries in a folder that differ only in their hashes.
const MaxAlike = 4096

// bound removes a quarter of the similar entries if there are too many. Entries that cannot be removed stay.
func (e Entry) bound() {
	all, _ := os.ReadDir(e.folder.path)
	all = slices.DeleteFunc(all, func(f fs.DirEntry) bool {
		alike, err := filepath.Match(e.alike, f.Name())
		return !alike || err != nil
	})
	if len(all) <= MaxAlike {
		return
	}
	written := map[string]time.Time{}
	for _, f := range all {
		if info, err := f.Info(); err == nil {
			written[f.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return written[a.Name()].Compare(written[b.Name()]) })
	for _, f := range all[:len(all)-MaxAlike*3/4] {
		_ = os.Remove(filepath.Join(e.folder.path, f.Name()))
	}
}

// lost is the first error of Write that Lost has not returned yet.
var lost atomic.Pointer[error]

// Lost returns the first error of Write since its last call, for example because of a full disk, nil if there was none.
// Callers of Write continue after errors; the command prints this one at its end.
func Lost() error {
	if err := lost.Swap(nil); err != nil {
		return *err
	}
	return nil
}

func (e Entry) unused(err error) error {
	return fmt.Errorf("the cache's %s is not used: %w", e.Path(), err)
}

// Entry returns the entry with a file name, without a folder, whether it exists or not.
func (f Folder) Entry(name string) Entry { return Entry{folder: f, name: name} }

// Hashed returns the entry that is named by a hash of everything that it depends on. The prefix and the suffix must not
// have special characters of filepath.Match.
func (f Folder) Hashed(prefix string, hash []byte, suffix string) Entry {
	digits := hex.EncodeToString(hash)
	return Entry{f, prefix + digits + suffix, prefix + strings.Repeat("[0-9a-f]", len(digits)) + suffix}
}
