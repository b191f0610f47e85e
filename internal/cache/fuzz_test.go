package cache_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/halox/halox/internal/cache"
)

// world is a folder of the cache, and what its entries should hold.
type world struct {
	folder cache.Folder
	holds  map[string][]byte // nil of what counts as absent
}

// disturb puts something else where an entry is, or takes it away.
func (w *world) disturb(t *testing.T, name string, how byte) {
	path := w.folder.Entry(name).Path()
	if err := errors.Join(os.MkdirAll(w.folder.Path(), 0o755), os.RemoveAll(path)); err != nil {
		t.Fatal(err)
	}
	var err error
	switch how % 4 {
	case 0:
		err = os.Symlink("b", path)
	case 1:
		err = os.WriteFile(path, []byte("of another user"), 0o666)
		err = errors.Join(err, os.Chmod(path, 0o666))
	case 2:
		err = os.Mkdir(path, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.holds[name] = nil
}

// isFolder reports whether a folder has taken the place of an entry: nothing replaces that.
func (w *world) isFolder(name string) bool {
	info, err := os.Lstat(w.folder.Entry(name).Path())
	return err == nil && info.IsDir()
}

// After any writes and disturbances an entry holds what was last written, or counts as absent.
func FuzzEntries(f *testing.F) {
	f.Add([]byte{0, 0, 5, 1, 0, 3, 3, 0, 1, 2, 0, 0, 0, 7, 1, 0, 2})
	f.Add([]byte("links, schemes, tunings and programs, written and read by several processes"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := &world{cache.At(t.TempDir()).Below("cache"), map[string][]byte{}}
		for ; len(data) >= 3 && len(data) < 200; data = data[3:] {
			name := string(rune('a' + data[1]%3))
			if text := bytes.Repeat(data[2:3], int(data[2])); data[0]%3 == 0 {
				w.disturb(t, name, data[2])
			} else if err := w.folder.Entry(name).Write(text, text); err == nil {
				w.holds[name] = append(text, text...)
			} else if !w.isFolder(name) {
				t.Errorf("write %s: %v", name, err)
			}
			w.check(t, name)
		}
	})
}

// check reads an entry.
func (w *world) check(t *testing.T, name string) {
	got, err := w.folder.Entry(name).Read()
	want := w.holds[name]
	if (err == nil) != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("%s holds %.40q, %v; want %.40q", name, got, err, want)
	}
}
