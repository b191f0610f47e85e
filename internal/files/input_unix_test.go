//go:build unix

package files_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/test"
)

// Neither reading nor replacing a pipe waits for its other end.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	test.Check(t, syscall.Mkfifo(path, 0o644))
	_, err := files.Read(path, 10)
	wantError(t, err, "it is a pipe, not a regular file")
	wantError(t, files.Write(path, nil), "it is a pipe, which a file would replace")
}
