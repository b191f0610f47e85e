package results

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// CheckWritable reports whether a file of this package can be written at path,
// by beginning one. It makes the folder where that is missing, and leaves a
// file that is there as it is.
func CheckWritable(path string) error {
	err := checkWritable(path)
	if err != nil {
		err = fmt.Errorf("results: %s cannot be written: %w", path, err)
	}
	return err
}

func checkWritable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder")
	}
	file, err := createAtomic(path)
	if err != nil {
		return err
	}
	return file.abort()
}

// An atomicFile is written beside its destination and takes its name on commit.
type atomicFile struct {
	*os.File
	path string
}

// createAtomic opens a temporary file in the folder of path, which is created
// where it is missing. The file gets the permissions of any new file.
func createAtomic(path string) (*atomicFile, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is a folder, a device or a pipe, which a file would replace")
	}
	dir, base := filepath.Split(path)
	if err := os.MkdirAll(filepath.Clean(dir), 0o777); err != nil {
		return nil, err
	}
	temp := filepath.Join(dir, fmt.Sprintf(".%s.%016x", base, rand.Uint64()))
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &atomicFile{File: file, path: path}, nil
}

// commit brings the file to the disk and gives it its name. After an error
// nothing of the file is left.
func (f *atomicFile) commit() error {
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// abort removes the file and leaves the destination as it was.
func (f *atomicFile) abort() error {
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// writeAtomic puts data into the file at path, all of it or nothing.
func writeAtomic(path string, data []byte) error {
	file, err := createAtomic(path)
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return errors.Join(err, file.abort())
	}
	return file.commit()
}
