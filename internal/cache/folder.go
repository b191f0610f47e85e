package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/halox/halox/internal/files"
)

// A Folder is the folder of the cache. The zero Folder does not exist: it is always empty.
type Folder struct{ path string }

// At returns the named folder. If the name is empty it is the one in the variable HALOX_CACHE, otherwise halox in the
// user's folder for caches, otherwise the zero Folder.
func At(name string) Folder {
	if name != "" {
		return Folder{name}
	}
	if name := os.Getenv("HALOX_CACHE"); name != "" {
		return Folder{name}
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return Folder{}
	}
	return Folder{filepath.Join(user, "halox")}
}

// Path returns the folder's name, "" for the zero Folder.
func (f Folder) Path() string { return f.path }

// Below returns a folder within this one.
func (f Folder) Below(name string) Folder {
	if f.path == "" {
		return f
	}
	return Folder{filepath.Join(f.path, name)}
}

// Check returns an error if the folder cannot be used. A missing folder is not an error: Write creates it.
func (f Folder) Check() error {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return root.Close()
}

// Keeps returns an error if nothing new can be stored in the folder.
func (f Folder) Keeps() error {
	if f.path == "" {
		return errors.New("nothing is stored for the next run: the user has no folder for caches; " +
			"set HALOX_CACHE")
	}
	if err := files.CheckWritable(filepath.Join(f.path, "new")); err != nil {
		return fmt.Errorf("nothing new is stored in the cache %s: %w", f.path, err)
	}
	return nil
}

// open opens an existing folder of this user. Files opened in it are in this folder, even if another one takes its
// name.
func (f Folder) open() (*os.Root, error) {
	if f.path == "" {
		return nil, errNowhere
	}
	info, err := os.Stat(f.path)
	if err == nil {
		err = checkFolder(info) // opening a pipe may block
	}
	if err != nil {
		return nil, f.unused(err)
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return nil, f.unused(err)
	}
	if info, err = root.Stat("."); err == nil {
		err = checkFolder(info)
	}
	if err != nil {
		return nil, errors.Join(f.unused(err), root.Close())
	}
	return root, nil
}

// make creates the folder if it is missing, and checks it.
func (f Folder) make() error {
	if f.path == "" {
		return errNowhere
	}
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		return f.unused(err)
	}
	return f.Check()
}

var errNowhere = fmt.Errorf("the cache is not used: the user has no folder for it: %w", fs.ErrNotExist)

func (f Folder) unused(err error) error {
	return fmt.Errorf("the cache %s is not used: %w", f.path, err)
}

// checkFolder returns an error if a folder of the cache cannot be used.
func checkFolder(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("is " + files.Kind(info.Mode()) + ", not a folder")
	}
	return checkOwner(info)
}

// checkFile returns an error if the file of an entry cannot be used.
func checkFile(info fs.FileInfo) error {
	if err := files.CheckRegular(info); err != nil {
		return err
	}
	if info.Size() > MaxBytes {
		return fmt.Errorf("must have at most %d bytes", MaxBytes)
	}
	return checkOwner(info)
}

// MaxBytes is the maximum size of an entry.
const MaxBytes = 64 << 20
