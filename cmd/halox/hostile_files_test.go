package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What is no regular file is not read as a record: a device may never end.
func TestResultsOfADevice(t *testing.T) {
	const endless = "/dev/zero"
	if _, err := os.Stat(endless); err != nil {
		t.Skip(err)
	}
	if code, out, errs := cli("results", endless); code != exitFailed || out != "" || !strings.Contains(errs, endless+": it is a device, not a regular file") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// A cache that others may write to is not used; that is told once, and the run goes on.
func TestACacheOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes tell nothing there")
	}
	folder := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HALOX_CACHE", folder)
	code, out, errs := cli("plan", write(t, "c.yaml", planned))
	if code != 0 || strings.Count(errs, "is not used: others than its owner may write to it") != 1 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// A record is written through a symbolic link into a file that keeps its mode.
func TestRecordThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, name := filepath.Join(dir, "r.json"), filepath.Join(dir, "latest.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("r.json", name); err != nil {
		t.Skip(err)
	}
	if code, out, errs := cli("run", write(t, "c.yaml", small), "-q", "--record", name); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := cli("results", file); code != 0 || !strings.Contains(out, "heat") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the mode became %v, %v", info.Mode(), err)
	}
}
