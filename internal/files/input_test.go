package files_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/test"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := put(t, filepath.Join(dir, "r.json"), "0123456789", 0o644)
	for _, p := range []string{path, link(t, "r.json", filepath.Join(dir, "link"))} {
		if data, err := files.Read(p, 10); err != nil || string(data) != "0123456789" {
			t.Errorf("%q, %v", data, err)
		}
		_, err := files.Read(p, 9)
		wantError(t, err, "must have at most 9 bytes")
	}
	empty := put(t, filepath.Join(dir, "empty"), "", 0o644)
	if data, err := files.Read(empty, 0); err != nil || len(data) != 0 {
		t.Errorf("%q, %v", data, err)
	}
	test.Is(t, test.ErrorOf(files.Read(filepath.Join(dir, "none"), 10)), fs.ErrNotExist)
	_, err := files.Read(dir, 10)
	wantError(t, err, "it is a folder, not a regular file")
	_, err = files.Read(os.DevNull, 10)
	wantError(t, err, "it is a device, not a regular file")
}

// A file that says it is short and goes on is cut off too.
func TestReadOfAFileThatGrows(t *testing.T) {
	if _, err := os.Stat("/proc/self/maps"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	_, err := files.Read("/proc/self/maps", 10)
	wantError(t, err, "must have at most 10 bytes")
}
