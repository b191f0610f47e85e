package files

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSame(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(at(name), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(at("a"), at("linked")); err != nil {
		t.Skip("SKIPPED: no hard links here: ", err)
	}
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{at("a"), at("a"), true},
		{at("a"), at("b"), false},
		{at("a"), at("linked"), true},
		{at("new"), filepath.Join(folder, "..", filepath.Base(folder), "new"), true},
		{at("new"), at("other"), false},
	} {
		if got := Same(tc.a, tc.b); got != tc.want {
			t.Errorf("%s and %s: %t", tc.a, tc.b, got)
		}
	}
}
