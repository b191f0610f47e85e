package kernels

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Results of measure are remembered, by the compiler and through the cache by others. An invalid entry of the
// cache is measured again and replaced; errors are not kept.
func TestRemember(t *testing.T) {
	o := Options{Cache: filepath.Join(t.TempDir(), "cache")}
	first := NewCompiler(o)
	failed := errors.New("failed")
	for _, c := range []struct {
		name     string
		compiler *Compiler
		key      string
		measured int // 0: it fails
		least    int // smallest valid result
		want     int
		known    bool
	}{
		{"an error is not kept", first, "a", 0, 1, 0, false},
		{"measured", first, "a", 1, 1, 1, false},
		{"kept by the compiler", first, "a", 2, 1, 1, true},
		{"another key", first, "b", 2, 1, 2, false},
		{"kept for another compiler", NewCompiler(o), "a", 3, 1, 1, true},
		{"invalid in the cache", NewCompiler(o), "a", 4, 2, 4, false},
		{"replaced in the cache", NewCompiler(o), "a", 5, 2, 4, true},
		{"still kept by the first", first, "a", 5, 2, 1, true},
	} {
		got, known, err := Remember(c.compiler, "kind", c.key, func(n int) bool { return n >= c.least },
			func() (int, error) {
				if c.measured == 0 {
					return 0, failed
				}
				return c.measured, nil
			})
		if got != c.want || known != c.known || err != nil != (c.measured == 0) {
			t.Errorf("%s: got %d, known %v, %v; want %d, known %v", c.name, got, known, err, c.want, c.known)
		}
	}
	c := NewCompiler(Options{Cache: filepath.Join(os.DevNull, "nowhere")})
	for key := range maxRemembered + 10 {
		_, _, _ = Remember(c, "kind", fmt.Sprint(key), func(int) bool { return true }, func() (int, error) { return 1, nil })
	}
	if n := len(c.remembered.values); n > maxRemembered {
		t.Errorf("%d values are in memory", n)
	}
}
