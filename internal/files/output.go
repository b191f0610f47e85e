package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// follow returns the destination of a file written to path: it resolves all symbolic links, including the last name of
// the path, whether or not the file and its folders exist.
func follow(path string) (string, error) {
	at, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return at, err
	}
	folder, name := filepath.Split(path)
	if to, err := os.Readlink(path); err == nil { // the target of the link does not exist
		if filepath.IsAbs(to) {
			folder = ""
		}
		return follow(folder + to)
	}
	if missing(cmp.Or(folder, ".")) {
		folder, name = filepath.Split(filepath.Clean(path))
	}
	if len(folder) > 1 {
		folder = folder[:len(folder)-1] // without its separator
	}
	at, err = follow(cmp.Or(folder, "."))
	return filepath.Join(at, name), err
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// leftoverAge is the age of temporary files whose processes must have been killed.
const leftoverAge = 24 * time.Hour

func tempName() string { return fmt.Sprintf(".halox-%016x", rand.Uint64()) }

var tempNames = regexp.MustCompile(`^\.halox-[0-9a-f]{16}$`)

// removeLeftovers removes the temporary files of killed processes from a folder, ignoring errors.
func removeLeftovers(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if !tempNames.MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > leftoverAge {
			os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// An Output is a file that is written under a temporary name next to its destination and takes its name on Commit.
// Until then, and after Abort, Abandon or the end of the process, the destination stays as it was.
type Output struct {
	temp     *os.File
	name     string // of temp
	path     string // name given by the caller
	at       string // the destination, with links followed
	finished bool
}

// pending are the outputs that are not committed or aborted.
var pending = struct {
	sync.Mutex
	all   map[*Output]bool
	ended bool
}{all: map[*Output]bool{}}

// errAbandoned is the error of abandoned outputs.
var errAbandoned = errors.New("the process ends")

// Abandon removes the temporary files of all pending outputs, which then fail. It is called when the process ends while
// other goroutines write.
func Abandon() {
	pending.Lock()
	defer pending.Unlock()
	for o := range pending.all {
		_ = os.Remove(o.name)
	}
	clear(pending.all)
}

// End is Abandon for a process that is about to exit. Create and Write return errors after it.
func End() {
	pending.Lock()
	pending.ended = true
	pending.Unlock()
	Abandon()
}

// remove removes the temporary file, unless Abandon has.
func (o *Output) remove() error {
	pending.Lock()
	defer pending.Unlock()
	if !pending.all[o] {
		return errAbandoned
	}
	delete(pending.all, o)
	return os.Remove(o.name)
}

// rename renames the temporary file, unless Abandon has removed it.
func (o *Output) rename() error {
	pending.Lock()
	defer pending.Unlock()
	if !pending.all[o] {
		return errAbandoned
	}
	err := os.Rename(o.name, o.at)
	if err == nil {
		delete(pending.all, o)
	}
	return err
}

// Create begins the file at path, and makes missing folders. If path is a symbolic link, its target is written, and the
// link stays. An existing file is replaced and keeps its mode; its owner becomes the current user, and other hard links
// keep the old content. A folder, a device, a pipe or a socket is not replaced: it is an error.
func Create(path string) (*Output, error) {
	at, mode, err := destination(path)
	if err != nil {
		return nil, err
	}
	o, err := begin(at, cmp.Or(mode, 0o666))
	if err != nil {
		return nil, err
	}
	o.path = path
	if mode != 0 { // the umask was taken from it
		if err := o.temp.Chmod(mode); err != nil {
			return nil, errors.Join(err, o.Abort())
		}
	}
	return o, nil
}

// destination returns the destination of a file written to path, and the mode of an existing file, 0 if there is none.
// It is an error if the existing file must not be replaced.
func destination(path string) (at string, mode fs.FileMode, err error) {
	if at, err = follow(path); err != nil {
		return "", 0, err
	}
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return at, 0, nil
	case err != nil:
		return "", 0, err
	case info.IsDir():
		return "", 0, errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return "", 0, errors.New("it is " + Kind(info.Mode()) + ", which a file would replace")
	}
	return at, info.Mode().Perm(), nil
}

// register adds the output to the pending ones, unless the process ends.
func (o *Output) register() bool {
	pending.Lock()
	defer pending.Unlock()
	if !pending.ended {
		pending.all[o] = true
	}
	return !pending.ended
}

// makeFolders makes a folder and those above it, and syncs the entries of what it makes to disk.
func makeFolders(folder string) error {
	parent := filepath.Dir(folder)
	if info, err := os.Stat(folder); err == nil && info.IsDir() || parent == folder {
		return err
	}
	if err := makeFolders(parent); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil { // another process may have made it
		return err
	}
	return SyncFolder(parent)
}

// begin opens a temporary file of the mode, less the umask, in the folder of the destination.
func begin(at string, mode fs.FileMode) (*Output, error) {
	folder := filepath.Dir(at)
	if err := makeFolders(folder); err != nil {
		return nil, err
	}
	removeLeftovers(folder)
	o := &Output{name: filepath.Join(folder, tempName()), path: at, at: at}
	if !o.register() { // before the file exists, so that Abandon misses none
		return nil, errAbandoned
	}
	temp, err := os.OpenFile(o.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		_ = o.remove()
		return nil, err
	}
	o.temp = temp
	pending.Lock()
	defer pending.Unlock()
	if !pending.all[o] { // abandoned in the meantime
		return nil, errors.Join(errAbandoned, temp.Close(), os.Remove(o.name))
	}
	return o, nil
}

// Path returns the path given to Create.
func (o *Output) Path() string { return o.path }

// Write appends to the file.
func (o *Output) Write(data []byte) (int, error) { return o.temp.Write(data) }

// Finish syncs the file to disk, which may take long. Only Commit or Abort may follow.
func (o *Output) Finish() error {
	if o.finished {
		return nil
	}
	o.finished = true
	return errors.Join(o.temp.Sync(), o.temp.Close())
}

// Commit finishes the file, renames it, and syncs the folder too. After an error before the renaming no file is left.
func (o *Output) Commit() error {
	err := o.Finish()
	if err == nil {
		err = o.rename()
	}
	if err != nil {
		return errors.Join(err, o.remove())
	}
	return SyncFolder(filepath.Dir(o.at))
}

// SyncFolder syncs the entries of a folder to disk, if the file system supports it.
func SyncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil || runtime.GOOS == "windows" {
		return nil // it may be written but not read
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// Abort removes the temporary file and leaves the destination unchanged.
func (o *Output) Abort() error {
	var err error
	if !o.finished {
		err = o.temp.Close()
	}
	return errors.Join(err, o.remove())
}

// Write writes the parts, one after another, to the file at path, like Create, Write and Commit.
func Write(path string, parts ...[]byte) error {
	o, err := Create(path)
	if err != nil {
		return err
	}
	return o.fill(parts)
}

// Replace is Write for a file that belongs to halox: it gets the mode, less the umask, and replaces everything except a
// folder, even a symbolic link.
func Replace(path string, mode fs.FileMode, parts ...[]byte) error {
	o, err := begin(path, mode)
	if err != nil {
		return err
	}
	return o.fill(parts)
}

func (o *Output) fill(parts [][]byte) error {
	for _, part := range parts {
		if _, err := o.Write(part); err != nil {
			return errors.Join(err, o.Abort())
		}
	}
	return o.Commit()
}

// CheckWritable returns an error if Create cannot begin a file at path. It tries to begin one there or, if its folder
// is missing, in the nearest existing folder, and removes it. Existing files do not change.
func CheckWritable(path string) error {
	at, mode, err := destination(path)
	if err != nil {
		return err
	}
	folder := filepath.Dir(at)
	for missing(folder) {
		folder = filepath.Dir(folder)
	}
	o, err := begin(filepath.Join(folder, filepath.Base(at)), cmp.Or(mode, 0o666))
	if err != nil {
		return err
	}
	return o.Abort()
}

// Same reports whether Create would write the same file for both names. The file need not exist.
func Same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return os.SameFile(x, y)
	}
	place := func(path string) string {
		at, _ := follow(path)
		at, _ = filepath.Abs(at)
		return at
	}
	return place(a) == place(b)
}
