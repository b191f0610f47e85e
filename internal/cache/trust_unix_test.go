//go:build unix

package cache_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/halox/halox/internal/cache"
)

func TestAPipeIsNoEntry(t *testing.T) {
	_, e := filled(t, "text")
	replaced(t, e, func(path string) error { return syscall.Mkfifo(path, 0o644) }, "it is a pipe")
}

// Nothing waits for a pipe in the place of the folder.
func TestAPipeIsNoFolder(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, cache.At(pipe).Entry("entry.json"), "it is a pipe, not a folder")
	if cache.At(pipe).Entry("entry.json").Write(nil) == nil {
		t.Error("something was written into a pipe")
	}
}

func TestModesThatOthersMayWrite(t *testing.T) {
	for _, mode := range []fs.FileMode{0o666, 0o664, 0o622} {
		_, e := filled(t, "text")
		replaced(t, e, func(path string) error {
			if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
				return err
			}
			return os.Chmod(path, mode)
		}, "others than its owner may write to it")
	}
	for _, mode := range []fs.FileMode{0o777, 0o775, 0o777 | fs.ModeSticky} {
		folder, e := filled(t, "text")
		if err := os.Chmod(folder.Path(), mode); err != nil {
			t.Fatal(err)
		}
		unused(t, folder, e, "chmod go-w makes it usable")
		if err := os.Chmod(folder.Path(), 0o755); err != nil {
			t.Fatal(err)
		}
		holds(t, e, "text")
	}
}

// unused checks that the folder is neither read nor written, for that reason.
func unused(t *testing.T, folder cache.Folder, e cache.Entry, why string) {
	t.Helper()
	refused(t, e, why)
	if folder.Check() == nil || e.Write(nil) == nil || folder.Entry("new.json").Write(nil) == nil {
		t.Error("the folder is used")
	}
}

// Only the superuser can give files away.
func TestOfAnotherUser(t *testing.T) {
	const other = 12345
	_, e := filled(t, "text")
	if err := os.Chown(e.Path(), other, -1); err != nil {
		t.Skip("SKIPPED: whoever runs this test cannot give a file to another user: ", err)
	}
	refused(t, e, "it belongs to user 12345")
	if err := e.Write([]byte("1")); err != nil {
		t.Error(err)
	}
	holds(t, e, "1")
	folder, e := filled(t, "text")
	if err := os.Chown(folder.Path(), other, -1); err != nil {
		t.Fatal(err)
	}
	unused(t, folder, e, "it belongs to user 12345")
}
