package files_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/test"
)

// A folder that the user may not write to is an error. The superuser may write to all: then a thread with the rights of
// another user asks.
func TestCheckWritableOfAClosedFolder(t *testing.T) {
	const other = 12345
	dir := filepath.Join(t.TempDir(), "closed")
	test.Check(t, os.Mkdir(dir, 0o555))
	done := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if _, _, code := syscall.RawSyscall(syscall.SYS_SETFSUID, other, 0, 0); int(code) != 0 {
				done <- code
				return
			}
		}
		done <- files.CheckWritable(filepath.Join(dir, "r.json"))
	}()
	wantError(t, <-done, "permission denied")
}
