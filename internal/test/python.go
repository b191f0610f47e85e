package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Python runs a script of Python with arguments, and fails the test if it fails. It skips the test if Python lacks the
// package, which it also looks for among the packages of make formats.
func Python(t *testing.T, pkg, script string, args ...string) {
	t.Helper()
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command("python3", args...)
		paths := filepath.Join(root(), ".tools", "formats") + string(os.PathListSeparator) + os.Getenv("PYTHONPATH")
		cmd.Env = append(os.Environ(), "PYTHONPATH="+paths)
		return cmd.CombinedOutput()
	}
	if out, err := run("-c", "import "+pkg); err != nil {
		t.Skipf("SKIPPED: needs Python with %s, see make formats: %v %s", pkg, err, out)
	}
	if out, err := run(append([]string{"-c", script}, args...)...); err != nil {
		t.Fatalf("python3: %v\n%s", err, out)
	}
}

// root returns the folder of the module, or of the file system.
func root() string {
	folder, _ := os.Getwd()
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}
