package kernels

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What was learnt is known afterwards, to the compiler and by the cache to others. What the cache holds that is
// not valid is learnt anew, and replaced; an error is not kept.
func TestRemember(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	first := NewCompiler(Options{Cache: dir})
	valid := func(text []byte) bool { return bytes.HasPrefix(text, []byte("learnt ")) }
	ask := func(c *Compiler, key, text string, known bool, want string) {
		t.Helper()
		got, was, err := c.Remember("kind", key, valid, func() ([]byte, error) { return []byte(text), nil })
		if err != nil || was != known || string(got) != want {
			t.Errorf("%q, known %v, %v; not %q, known %v", got, was, err, want, known)
		}
	}
	failed := errors.New("failed")
	if _, _, err := first.Remember("kind", "a", valid, func() ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	ask(first, "a", "learnt one", false, "learnt one")
	ask(first, "a", "learnt two", true, "learnt one")
	ask(first, "b", "learnt two", false, "learnt two")
	ask(NewCompiler(Options{Cache: dir}), "a", "learnt three", true, "learnt one")
	files, _ := filepath.Glob(filepath.Join(dir, "kernels", "kind-*.json"))
	if len(files) != 2 {
		t.Fatal(files)
	}
	for _, text := range []string{"", "{", "learn"} {
		for _, file := range files {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		ask(first, "a", "learnt four", true, "learnt one")
		ask(NewCompiler(Options{Cache: dir}), "a", "learnt four", false, "learnt four")
		ask(NewCompiler(Options{Cache: dir}), "a", "learnt five", true, "learnt four")
	}
}
