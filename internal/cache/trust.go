package cache

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/halox/halox/internal/files"
)

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
