package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/natefinch/atomic"
)

// mostLinks is how many symbolic links may lead from one to the next, as on Linux.
const mostLinks = 40

// follow returns where a file written to path belongs: path itself, or the end of the
// symbolic links that begin there, where no file need be yet.
func follow(path string) (string, error) {
	for range mostLinks {
		path = straight(path)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		if path, err = linked(path); err != nil {
			return "", err
		}
	}
	return "", errors.New("too many symbolic links")
}

// straight returns a path without "..": where the folder is there, that which the system finds, behind links too; else
// that of the names alone, so that all who name the folder mean the same.
func straight(path string) string {
	folder, name := filepath.Split(path)
	if !slices.Contains(strings.Split(filepath.ToSlash(folder), "/"), "..") {
		return path
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		return filepath.Join(real, name)
	}
	return filepath.Clean(path)
}

// linked returns what a symbolic link names. A relative name begins at the folder that
// the link lies in, not at a link to that folder.
func linked(link string) (string, error) {
	name, err := os.Readlink(link)
	if err != nil || filepath.IsAbs(name) {
		return name, err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(link))
	return filepath.Join(folder, name), err
}

// A process that is killed while it writes leaves its temporary file behind. Whoever
// next writes to the folder removes those that nobody can be writing any more.

const (
	leftoverAge = 24 * time.Hour // since the last write to the file
	mostNames   = 4096           // of a folder that are looked at
)

func tempName() string { return fmt.Sprintf(".halox-%016x", rand.Uint64()) }

var tempNames = regexp.MustCompile(`^\.halox-[0-9a-f]{16}$`)

// removeLeftovers removes the temporary files in a folder that are old enough, as far as
// it may.
func removeLeftovers(folder string) {
	f, err := os.Open(folder)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostNames)
	for _, name := range names {
		if path := filepath.Join(folder, name); tempNames.MatchString(name) && old(path) {
			os.Remove(path)
		}
	}
}

func old(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge
}

// An Output is a file that is written beside its destination and takes its name on Commit.
// Until then, and for ever after Abort or the end of the process, the destination stays as
// it was.
type Output struct {
	temp *os.File
	path string // as the caller named it
	at   string // the destination, with links followed
}

// Create begins the file at path. Folders that are missing are made. Where path is a
// symbolic link, the file that it leads to is written, and the link stays. A file that is
// there is replaced and keeps its mode; its owner becomes who writes, and other hard links
// keep the old content. A folder, a device, a pipe or a socket is not replaced: it is an
// error.
func Create(path string) (*Output, error) {
	at, err := follow(path)
	if err != nil {
		return nil, err
	}
	mode, there, err := modeAt(at)
	if err != nil {
		return nil, err
	}
	o, err := begin(at, mode)
	if err != nil {
		return nil, err
	}
	o.path = path
	if there {
		err = o.temp.Chmod(mode) // the umask was taken from it
	}
	if err != nil {
		return nil, errors.Join(err, o.Abort())
	}
	return o, nil
}

// modeAt returns the mode of the file at a place, and whether there is one; else that of
// any new file. What a file should not replace is an error.
func modeAt(at string) (mode fs.FileMode, there bool, err error) {
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0o666, false, nil
	case err != nil:
		return 0, false, err
	case info.IsDir():
		return 0, true, errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return 0, true, errors.New("it is " + Kind(info.Mode()) + ", which a file would replace")
	}
	return info.Mode().Perm(), true, nil
}

// begin opens a temporary file of the mode, less the umask, in the folder of the
// destination.
func begin(at string, mode fs.FileMode) (*Output, error) {
	folder := filepath.Dir(at)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	removeLeftovers(folder)
	temp, err := os.OpenFile(filepath.Join(folder, tempName()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &Output{temp: temp, path: at, at: at}, nil
}

// Path returns the destination, as Create was told it.
func (o *Output) Path() string { return o.path }

// Write appends to the file.
func (o *Output) Write(data []byte) (int, error) { return o.temp.Write(data) }

// Commit brings the file to the disk, gives it its name, and brings the name to the disk
// too. After an error before it had its name, nothing of the file is left.
func (o *Output) Commit() error {
	err := errors.Join(o.temp.Sync(), o.temp.Close())
	if err == nil {
		err = atomic.ReplaceFile(o.temp.Name(), o.at)
	}
	if err != nil {
		return errors.Join(err, os.Remove(o.temp.Name()))
	}
	return syncFolder(filepath.Dir(o.at))
}

// Abort removes what was written and leaves the destination as it was.
func (o *Output) Abort() error {
	return errors.Join(o.temp.Close(), os.Remove(o.temp.Name()))
}

// Write puts the parts, one after another, into the file at path, as Create, Write and
// Commit do.
func Write(path string, parts ...[]byte) error {
	o, err := Create(path)
	if err != nil {
		return err
	}
	return o.fill(parts)
}

// Replace is Write for a file of the program's own: it gets the mode, less the umask, and
// takes the place of whatever is there but a folder, of a symbolic link too.
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

// CheckWritable reports whether Create can begin a file at path, by beginning one. What is there
// stays as it is, and nothing new is left: no folder either.
func CheckWritable(path string) error {
	at, err := follow(path)
	if err != nil {
		return err
	}
	var made []string // the innermost first
	for folder := filepath.Dir(at); missing(folder); folder = filepath.Dir(folder) {
		made = append(made, folder)
	}
	o, err := Create(path)
	if err == nil {
		err = o.Abort()
	}
	for _, folder := range made {
		if os.Remove(folder) != nil { // it is not there, or others have put something into it
			break
		}
	}
	return err
}

// CheckPossible is CheckWritable that makes no folder, for a moment either: where that of the file is
// missing, it looks whether one can be made.
func CheckPossible(path string) error {
	at, err := follow(path)
	if err != nil {
		return err
	}
	mode, _, err := modeAt(at)
	if err != nil {
		return err
	}
	folder := filepath.Dir(at)
	for missing(folder) && filepath.Dir(folder) != folder {
		folder = filepath.Dir(folder)
	}
	o, err := begin(filepath.Join(folder, filepath.Base(at)), mode)
	if err != nil {
		return err
	}
	return o.Abort()
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Same reports whether two names are of one file, which need not be there yet: whether Create would write to the same.
func Same(a, b string) bool {
	x, err1 := place(a)
	y, err2 := place(b)
	return err1 == nil && err2 == nil && x == y || sameInfo(a, b)
}

// place returns where a file written to path belongs, without links in its folders as far as these are there.
func place(path string) (string, error) {
	if at, err := follow(path); err == nil {
		path = at
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			below, err := filepath.Rel(folder, path)
			return filepath.Join(real, below), err
		}
		if folder == filepath.Dir(folder) {
			return path, nil
		}
	}
}

// sameInfo reports whether two names lead to one file that is there.
func sameInfo(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
