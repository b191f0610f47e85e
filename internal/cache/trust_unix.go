//go:build unix

package cache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner returns an error if others than this user and the superuser may have written to a file or a folder.
func checkOwner(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others than its owner may write to it: its mode is %v; chmod go-w makes it usable", mode)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, not to user %d, who runs this", s.Uid, os.Geteuid())
	}
	return nil
}
