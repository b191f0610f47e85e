//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file until it is closed or the process ends. locked is false if another process has it locked. The
// error is errors.ErrUnsupported if the file system has no locks.
func tryLock(f *os.File) (locked bool, err error) {
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	switch err {
	case nil:
		return true, nil
	case syscall.EWOULDBLOCK:
		return false, nil
	case syscall.ENOLCK, syscall.ENOSYS, syscall.EINVAL, syscall.EOPNOTSUPP:
		return false, errors.ErrUnsupported
	}
	return false, err
}
