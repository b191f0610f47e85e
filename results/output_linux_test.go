package results_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
)

// A folder that is closed to the user is told before a run is spent. To the superuser none is closed:
// then a thread asks that has the rights of another user.
func TestCheckWritableOfAClosedFolder(t *testing.T) {
	const other = 12345
	dir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if _, _, code := syscall.RawSyscall(syscall.SYS_SETFSUID, other, 0, 0); int(code) != 0 {
				done <- code
				return
			}
		}
		done <- results.CheckWritable(filepath.Join(dir, "r.json"))
	}()
	resultstest.WantError(t, <-done, "cannot be written", "permission denied")
}
