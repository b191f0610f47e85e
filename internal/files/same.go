package files

import (
	"os"
	"path/filepath"
)

// Same reports whether two names are of one file, which need not be there yet.
func Same(a, b string) bool {
	x, err1 := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && x == y || sameInfo(a, b)
}

// sameInfo reports whether two names lead to one file that is there.
func sameInfo(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
