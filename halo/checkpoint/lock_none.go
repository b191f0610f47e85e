//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package checkpoint

import (
	"errors"
	"os"
)

func tryLock(*os.File) (locked bool, err error) { return false, errors.ErrUnsupported }
