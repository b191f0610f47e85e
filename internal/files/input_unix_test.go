//go:build unix

package files_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/halox/halox/internal/files"
)

// Neither reading nor replacing a pipe waits for its other end.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := files.Read(path, 10)
	wantError(t, err, "it is a pipe, not a regular file")
	wantError(t, files.Write(path, nil), "it is a pipe, which a file would replace")
}
