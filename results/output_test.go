package results_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/results"
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
		if names := files(t, filepath.Dir(path)); path != file && len(names) != 0 {
			t.Errorf("left behind: %v", names)
		}
	}
	if got := string(read(t, file)); got != "old" {
		t.Errorf("the file now holds %q", got)
	}
	wantError(t, results.CheckWritable(dir), dir, "cannot be written: it is a folder")
	below := filepath.Join(file, "r.json")
	wantError(t, results.CheckWritable(below), below, "cannot be written")
}

// A device stays one: no file takes its name.
func TestDevicesAreNotReplaced(t *testing.T) {
	link := filepath.Join(t.TempDir(), "null.json")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Skip(err)
	}
	wantError(t, results.CheckWritable(link), link, "a device")
	r := &results.Record{Kind: results.KindLinks}
	wantError(t, r.Write(link), link, "a device")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestCheckWritableOfAClosedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Create(filepath.Join(dir, "probe")); err == nil {
		f.Close()
		t.Skip("whoever runs this test may write anywhere")
	}
	wantError(t, results.CheckWritable(filepath.Join(dir, "r.json")), "cannot be written", "permission denied")
}
