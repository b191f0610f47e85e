package files_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/test"
)

// put makes a file that a test begins with.
func put(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	test.Check(t, os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode))
	return path
}

// holds checks a file's content, and that no other file is in its folder than those named.
func holds(t *testing.T, path, want string, others ...string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %.40q, %v; want %.40q", path, got, err, want)
	}
	all, err := os.ReadDir(filepath.Dir(path))
	for _, e := range all {
		if e.Name() != filepath.Base(path) && !slices.Contains(others, e.Name()) {
			t.Errorf("%s was left behind", e.Name())
		}
	}
	test.Report(t, err)
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	test.Says(t, err, text)
}

func link(t *testing.T, to, at string) string {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	return at
}

func TestWriteMakesFolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "r.json")
	test.Check(t, files.Write(path, []byte("a"), nil, []byte("b")))
	holds(t, path, "ab")
	t.Chdir(filepath.Dir(path))
	test.Check(t, files.Write("r.json", []byte("c")))
	holds(t, path, "c")
}

func TestModeIsKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: files have no such modes")
	}
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o666, 0o755} {
		path := put(t, filepath.Join(t.TempDir(), "r.json"), "old", mode)
		test.Check(t, files.Write(path, []byte("new")))
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%v became %v, %v", mode, info.Mode(), err)
		}
		holds(t, path, "new")
	}
}

// The file that a symbolic link leads to is written, be it there or not; the link stays.
func TestLinksAreFollowed(t *testing.T) {
	for _, c := range []struct {
		name  string
		links map[string]string // from a name to what it leads to, all below one folder
		path  string            // is written
		want  string            // is the file
	}{
		{"to a file", map[string]string{"here/link": "../there/r.json"}, "here/link", "there/r.json"},
		{"to nothing yet", map[string]string{"here/link": "../there/new.json"}, "here/link", "there/new.json"},
		{"to a link", map[string]string{"here/link": "second", "here/second": "../there/r.json"}, "here/link", "there/r.json"},
		{"in a linked folder", map[string]string{"folder": "here/below", "here/below/up": "../../there/r.json"}, "folder/up", "there/r.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
			for _, folder := range []string{"here/below", "there"} {
				test.Check(t, os.MkdirAll(at(folder), 0o755))
			}
			put(t, at("there/r.json"), "old", 0o600)
			for name, to := range c.links {
				link(t, to, at(name))
			}
			writeThrough(t, at(c.path), at(c.want))
		})
	}
	dir := t.TempDir()
	file := put(t, filepath.Join(dir, "r.json"), "old", 0o600)
	writeThrough(t, link(t, file, filepath.Join(t.TempDir(), "absolute")), file)
}

// writeThrough writes to a link and looks at the file that it leads to.
func writeThrough(t *testing.T, path, want string) {
	t.Helper()
	test.Check(t, files.CheckWritable(path), files.Write(path, []byte("new")))
	holds(t, want, "new", "r.json")
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
}

// A path that leads up again names the same file to all: behind a link that which the system finds, and through a folder that is not
// there that which the names say.
func TestPathsThatLeadUp(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "outer", "inner")
	test.Check(t, os.MkdirAll(inner, 0o755))
	link(t, inner, filepath.Join(dir, "short"))
	for path, at := range map[string]string{
		dir + "/absent/../a.json":            "a.json",
		dir + "/absent/../outer/../b.json":   "b.json",
		dir + "/short/../c.json":             "outer/c.json",
		dir + "/absent/../short/../d.json":   "d.json",
		dir + "/outer/inner/../../e/f.json":  "e/f.json",
		dir + "/outer/../absent/../g/h.json": "g/h.json",
	} {
		if err := errors.Join(files.CheckWritable(path), files.Write(path, []byte("text"))); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, at)); err != nil || string(got) != "text" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func TestOnlyFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("file"), "", 0o644)
	for path, why := range map[string]string{
		dir:                             "it is a folder",
		link(t, os.DevNull, at("null")): "it is a device",
		link(t, "b", at("a")):           "too many links",
		link(t, "a", at("b")):           "too many links",
		at("file/r.json"):               "not a directory",
	} {
		wantError(t, files.Write(path, nil), why)
		wantError(t, files.CheckWritable(path), why)
	}
}

func TestCheckWritableChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := put(t, filepath.Join(dir, "r.json"), "old", 0o644)
	for _, p := range []string{path, filepath.Join(dir, "other.json"), filepath.Join(dir, "some", "folder", "r.json")} {
		test.Check(t, files.CheckWritable(p))
	}
	holds(t, path, "old")
}

func TestAbortLeavesTheOldFile(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "r.json"), "old", 0o644)
	o := test.Must(files.Create(path))(t)
	if _, err := o.Write([]byte("half")); err != nil || o.Path() != path {
		t.Errorf("%s, %v", o.Path(), err)
	}
	test.Report(t, o.Abort())
	holds(t, path, "old")
}

// Replace takes the place of a link, and leaves what it leads to.
func TestReplaceTakesThePlaceOfALink(t *testing.T) {
	dir := t.TempDir()
	other := put(t, filepath.Join(dir, "other"), "theirs", 0o644)
	path := link(t, "other", filepath.Join(dir, "entry"))
	test.Check(t, files.Replace(path, 0o600, []byte("ours")))
	holds(t, other, "theirs", "entry")
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v", info, err)
	}
	wantError(t, files.Replace(dir, 0o600), "") // and a folder stays
}

// What killed processes left behind goes when it is old, and nothing else.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	long := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{".halox-0123456789abcdef", ".halox-notes", ".halox-0123456789abcdef.json", "r0.json"} {
		put(t, at(name), "", 0o644)
		test.Check(t, os.Chtimes(at(name), long, long))
	}
	put(t, at(".halox-fedcba9876543210"), "", 0o644)
	test.Check(t, files.Write(at("r.json"), []byte("new")))
	holds(t, at("r.json"), "new", ".halox-fedcba9876543210", ".halox-notes", ".halox-0123456789abcdef.json", "r0.json")
	if _, err := os.Lstat(at(".halox-0123456789abcdef")); err == nil {
		t.Error("an old temporary file is still there")
	}
}

// Files that are not there yet are the same where writing to either makes the same one.
func TestSame(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, filepath.FromSlash(name)) }
	test.Check(t, os.MkdirAll(at("real/below"), 0o755))
	put(t, at("a"), "text", 0o644)
	put(t, at("b"), "text", 0o644)
	if err := os.Link(at("a"), at("linked")); err != nil {
		t.Skip("SKIPPED: no hard links here: ", err)
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
		{"a", "a", true},
		{"a", "b", false},
		{"a", "linked", true},
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
		{"loop", "real/new", false},
	} {
		if got := files.Same(at(tc.a), folder+"/"+tc.b); got != tc.want {
			t.Errorf("%s and %s: %t", tc.a, tc.b, got)
		}
	}
}

// TestMain is also the program of a process that writes a file again and again.
func TestMain(m *testing.M) {
	path := os.Getenv("FILES_TEST_WRITE")
	if path == "" {
		os.Exit(m.Run())
	}
	for i := byte(0); ; i++ {
		if err := files.Write(path, bytes.Repeat([]byte{'a' + i%26}, size)); err != nil {
			panic(err)
		}
	}
}

const size = 1 << 20

// A process that is killed while it writes leaves the whole of what it wrote last.
func TestKilledWriter(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "r.json"), strings.Repeat("z", size), 0o644)
	for i := range 20 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "FILES_TEST_WRITE="+path)
		test.Check(t, c.Start())
		time.Sleep(time.Duration(20+3*i) * time.Millisecond)
		test.Report(t, c.Process.Kill())
		c.Wait()
		data, err := os.ReadFile(path)
		if err != nil || len(data) != size || bytes.Count(data, data[:1]) != size {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	}
}
