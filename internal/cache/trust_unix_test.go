//go:build unix

package cache_test

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/test"
)

// Nothing waits for a pipe in the place of an entry or of the folder.
func TestPipesAreNotUsed(t *testing.T) {
	mkfifo := func(path string) error { return syscall.Mkfifo(path, 0o644) }
	_, e := filled(t, "text")
	replaced(t, e, mkfifo, "is a pipe")
	folder := fresh(t)
	test.Check(t, mkfifo(folder.Path()))
	refused(t, folder.Entry("entry.json"), "is a pipe, not a folder")
	if folder.Entry("entry.json").Write(nil) == nil {
		t.Error("something was written into a pipe")
	}
}

func TestModesThatOthersMayWrite(t *testing.T) {
	for _, mode := range []fs.FileMode{0o666, 0o664, 0o622} {
		_, e := filled(t, "text")
		replaced(t, e, func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("theirs"), 0o600), os.Chmod(path, mode))
		}, "others than its owner may write to it")
	}
	for _, mode := range []fs.FileMode{0o777, 0o775, 0o777 | fs.ModeSticky} {
		folder, e := filled(t, "text")
		test.Check(t, os.Chmod(folder.Path(), mode))
		unused(t, folder, e, "chmod go-w makes it usable")
		test.Check(t, os.Chmod(folder.Path(), 0o755))
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
	test.Check(t, e.Write([]byte("1")))
	holds(t, e, "1")
	folder, e := filled(t, "text")
	test.Check(t, os.Chown(folder.Path(), other, -1))
	unused(t, folder, e, "it belongs to user 12345")
}
