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

// Files that are not there yet are the same where writing to either makes the same one.
func TestSameBehindLinks(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, filepath.FromSlash(name)) }
	if err := os.MkdirAll(at("real/below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"folder": "real", "real/up": "../real/below", "dangling": "real/new", "second": "dangling", "absolute": at("folder/new"), "loop": "loop",
	} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Skip("SKIPPED: no symbolic links here: ", err)
		}
	}
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"real/new", "folder/new", true},
		{"real/new", "folder/other", false},
		{"real/no/folder/new", "folder/no/folder/new", true},
		{"real/no/folder/new", "folder/no/new", false},
		{"folder/up/new", "real/below/new", true},
		{"folder/up/../new", "real/new", true},
		{"dangling", "real/new", true},
		{"second", "folder/new", true},
		{"absolute", "dangling", true},
		{"dangling", "real/other", false},
		{"loop", "loop", true},
		{"loop", "real/new", false},
	} {
		if got := Same(at(tc.a), folder+"/"+tc.b); got != tc.want {
			t.Errorf("%s and %s: %t", tc.a, tc.b, got)
		}
	}
}
