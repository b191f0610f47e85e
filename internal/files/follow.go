package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// straight returns a path without "..": where the folder is there, that which the system finds, behind links too; else that of the
// names alone, so that all who name the folder mean the same.
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
