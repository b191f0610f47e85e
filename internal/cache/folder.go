package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/halox/halox/internal/files"
)

// A Folder is where the cache is. The zero Folder is nowhere: it holds and keeps nothing.
type Folder struct{ path string }

// At returns the named folder. If the name is empty it is the one that the variable
// HALOX_CACHE names, else halox in the user's folder for caches, else nowhere.
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

// Path returns the folder's name, "" for nowhere.
func (f Folder) Path() string { return f.path }

// Below returns a folder within this one.
func (f Folder) Below(name string) Folder {
	if f.path == "" {
		return f
	}
	return Folder{filepath.Join(f.path, name)}
}

// Check says why the folder is not used, nil if it is. A missing folder is no error: Write
// makes it.
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

// Keeps says why nothing new can be kept in the folder, nil if it can.
func (f Folder) Keeps() error {
	if f.path == "" {
		return errors.New("nothing is kept for the next run: there is no folder for the user's cache; " +
			"HALOX_CACHE names one")
	}
	if err := files.CheckWritable(filepath.Join(f.path, "new")); err != nil {
		return fmt.Errorf("the cache %s keeps nothing new for the next run: %w", f.path, err)
	}
	return nil
}

// open opens an existing folder of this user. What is then opened in it is in this folder,
// even if another takes its name.
func (f Folder) open() (*os.Root, error) {
	if f.path == "" {
		return nil, errNowhere
	}
	info, err := os.Stat(f.path)
	if err == nil {
		err = checkFolder(info) // to open a pipe may wait
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

// checkFolder says what is wrong with a folder of the cache.
func checkFolder(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("it is " + files.Kind(info.Mode()) + ", not a folder")
	}
	return checkOwner(info)
}

// checkFile says what is wrong with the file of an entry.
func checkFile(info fs.FileInfo) error {
	if err := files.CheckRegular(info); err != nil {
		return err
	}
	if info.Size() > MaxBytes {
		return fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	return checkOwner(info)
}

// MaxBytes is the size that an entry may have.
const MaxBytes = 64 << 20
