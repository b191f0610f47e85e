package files

import (
	"os"
	"path/filepath"
)

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
