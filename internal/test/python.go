package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// importing has the error of importing a package in Python, by package: some take a second.
var importing sync.Map

// Python runs a Python program with arguments. It skips the test if a package that the program needs cannot be
// imported: make formats installs some.
func Python(t *testing.T, pkg, script string, args ...string) {
	t.Helper()
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command("python3", args...)
		paths := filepath.Join(root(), ".tools", "formats") + string(os.PathListSeparator) + os.Getenv("PYTHONPATH")
		cmd.Env = append(os.Environ(), "PYTHONPATH="+paths)
		return cmd.CombinedOutput()
	}
	try, _ := importing.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		out, err := run("-c", "import "+pkg)
		return string(out), err
	}))
	if out, err := try.(func() (string, error))(); err != nil {
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
