package kernels

import (
	"errors"
	"path/filepath"
	"testing"
)

// What was measured is known afterwards, to the compiler and by the cache to others. What the cache holds that is
// not valid is measured anew, and replaced; an error is not kept.
func TestRemember(t *testing.T) {
	o := Options{Cache: filepath.Join(t.TempDir(), "cache")}
	first := NewCompiler(o)
	failed := errors.New("failed")
	for _, c := range []struct {
		name     string
		compiler *Compiler
		key      string
		measured int // 0: it fails
		least    int // that is valid
		want     int
		known    bool
	}{
		{"an error is not kept", first, "a", 0, 1, 0, false},
		{"measured", first, "a", 1, 1, 1, false},
		{"known to the compiler", first, "a", 2, 1, 1, true},
		{"another key", first, "b", 2, 1, 2, false},
		{"known to another compiler", NewCompiler(o), "a", 3, 1, 1, true},
		{"not valid in the cache", NewCompiler(o), "a", 4, 2, 4, false},
		{"replaced in the cache", NewCompiler(o), "a", 5, 2, 4, true},
		{"still known to the first", first, "a", 5, 2, 1, true},
	} {
		got, known, err := Remember(c.compiler, "kind", c.key, func(n int) bool { return n >= c.least },
			func() (int, error) {
				if c.measured == 0 {
					return 0, failed
				}
				return c.measured, nil
			})
		if got != c.want || known != c.known || err != nil != (c.measured == 0) {
			t.Errorf("%s: %d, known %v, %v; want %d, known %v", c.name, got, known, err, c.want, c.known)
		}
	}
}
