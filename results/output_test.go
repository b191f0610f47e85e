package results_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/field"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/trace"
)

func TestCheckWritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "there.json")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(dir, "new", "folder", "r.json")} {
		if err := results.CheckWritable(path); err != nil {
			t.Error(err)
		}
		if names := resultstest.Files(t, dir); len(names) != 1 {
			t.Errorf("left behind: %v", names)
		}
	}
	if got := string(resultstest.ReadFile(t, file)); got != "old" {
		t.Errorf("the file now holds %q", got)
	}
	resultstest.WantError(t, results.CheckWritable(dir), dir, "cannot be written: it is a folder")
	below := filepath.Join(file, "r.json")
	resultstest.WantError(t, results.CheckWritable(below), below, "cannot be written")
}

// Through a symbolic link the file that it leads to is written, and keeps its mode.
func TestOutputsThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "r.json"), filepath.Join(dir, "latest.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("r.json", link); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	if err := (&results.Record{Kind: results.KindLinks}).Write(link); err != nil {
		t.Fatal(err)
	}
	if r, err := results.Read(file); err != nil || r.Kind != results.KindLinks {
		t.Errorf("%v, %v", r, err)
	}
	w, err := field.NewWriter(link, []int{1}, field.Float64)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write([]float64{7}), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, values, err := field.Read(file); err != nil || values[0] != 7 {
		t.Errorf("%v, %v", values, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if names := resultstest.Files(t, dir); len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
}

// What is no regular file, or larger than any of its kind, is not read.
func TestOnlyFilesAreRead(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge.json")
	if err := errors.Join(os.WriteFile(huge, nil, 0o644), os.Truncate(huge, 1<<30+1)); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	for name, why := range map[string]string{os.DevNull: "it is a device, not a regular file", huge: "it has more than"} {
		_, err := results.Read(name)
		resultstest.WantError(t, err, name, why)
		_, err = trace.Read(name)
		resultstest.WantError(t, err, name, why)
	}
	_, _, err := field.Read(os.DevNull)
	resultstest.WantError(t, err, "it is a device, not a regular file")
}

// A device stays one: no file takes its name.
func TestDevicesAreNotReplaced(t *testing.T) {
	link := filepath.Join(t.TempDir(), "null.json")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	resultstest.WantError(t, results.CheckWritable(link), link, "a device")
	r := &results.Record{Kind: results.KindLinks}
	resultstest.WantError(t, r.Write(link), link, "a device")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
