package cache_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/test"
)

// fresh returns a folder of the cache that is not there yet.
func fresh(t *testing.T) cache.Folder {
	return cache.At(filepath.Join(t.TempDir(), "cache"))
}

// filled returns an entry that holds a text, and can be read.
func filled(t *testing.T, text string) (cache.Folder, cache.Entry) {
	t.Helper()
	folder := fresh(t)
	e := folder.Entry("entry.json")
	test.Check(t, e.Write([]byte(text)))
	holds(t, e, text)
	return folder, e
}

func holds(t *testing.T, e cache.Entry, want string) {
	t.Helper()
	if got, err := e.Read(); err != nil || string(got) != want {
		t.Errorf("the entry holds %.40q, %v; want %.40q", got, err, want)
	}
}

// refused checks that the entry counts as absent, for that reason, and soon.
func refused(t *testing.T, e cache.Entry, why string) {
	t.Helper()
	type answer struct {
		data []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		data, err := e.Read()
		answers <- answer{data, err}
	}()
	select {
	case a := <-answers:
		if a.err == nil || a.data != nil || !strings.Contains(a.err.Error(), why) || !strings.Contains(a.err.Error(), "is not used") {
			t.Errorf("got %.40q, %v; want %q", a.data, a.err, why)
		}
	case <-time.After(time.Minute):
		t.Fatal("to read it takes over a minute")
	}
}

func TestWhereTheCacheIs(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/xdg")
	t.Setenv("HALOX_CACHE", "/environment")
	if got := cache.At("/named").Path(); got != "/named" {
		t.Error(got)
	}
	if got := cache.At("").Path(); got != "/environment" {
		t.Error(got)
	}
	t.Setenv("HALOX_CACHE", "")
	user, err := os.UserCacheDir()
	if got := cache.At("").Path(); err != nil || got != filepath.Join(user, "halox") {
		t.Error(got, err)
	}
}

func TestNowhere(t *testing.T) {
	for _, name := range []string{"HALOX_CACHE", "XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, "")
	}
	folder := cache.At("").Below("kernels")
	e := folder.Entry("entry.json")
	if folder.Path() != "" || e.Path() != "" || folder.Check() != nil || folder.Keeps() == nil {
		t.Errorf("%q, %q, %v, %v", folder.Path(), e.Path(), folder.Check(), folder.Keeps())
	}
	test.Is(t, test.ErrorOf(e.Read()), fs.ErrNotExist)
	if e.Write(nil) == nil {
		t.Error("something was kept nowhere")
	}
}

func TestWriteAndRead(t *testing.T) {
	folder := fresh(t).Below("kernels")
	e := folder.Entry("entry.json")
	test.Report(t, errors.Join(folder.Check(), folder.Keeps()))
	test.Is(t, test.ErrorOf(e.Read()), fs.ErrNotExist)
	for _, text := range []string{"one", "", "two"} {
		test.Check(t, e.Write([]byte(text), []byte("!")))
		holds(t, e, text+"!")
	}
	if all, err := os.ReadDir(folder.Path()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	test.Report(t, folder.Check())
}

func TestAFolderMayBeALink(t *testing.T) {
	folder, _ := filled(t, "text")
	name := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder.Path(), name); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	holds(t, cache.At(name).Entry("entry.json"), "text")
}

// Whatever is in the place of an entry counts as absent, and is replaced by the next write. No reader waits for it.
func TestWhatIsNoEntry(t *testing.T) {
	link := func(to string) func(string) error {
		return func(path string) error { return os.Symlink(to, path) }
	}
	for _, c := range []struct {
		name string
		make func(path string) error
		why  string
	}{
		{"a link to an endless device", link("/dev/zero"), "it is a symbolic link"},
		{"a link to a file", link("other.json"), "it is a symbolic link"},
		{"a link to itself", link("entry.json"), "it is a symbolic link"},
		{"too large", func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, cache.MaxBytes+1))
		}, "must have at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder, e := filled(t, "text")
			test.Check(t, folder.Entry("other.json").Write([]byte("other")))
			replaced(t, e, c.make, c.why)
			holds(t, folder.Entry("other.json"), "other")
		})
	}
	_, e := filled(t, "text")
	if err := e.Write(make([]byte, cache.MaxBytes), []byte{0}); err == nil {
		t.Error("what is too large was kept")
	}
	if err := cache.Lost(); err == nil || !strings.Contains(err.Error(), e.Path()+" is not kept") || cache.Lost() != nil {
		t.Errorf("what was not kept is not told, once: %v", err)
	}
	holds(t, e, "text")
}

// replaced puts something in the place of an entry and checks that it is refused, and replaced by a write.
func replaced(t *testing.T, e cache.Entry, make func(string) error, why string) {
	t.Helper()
	test.Check(t, os.Remove(e.Path()))
	if err := make(e.Path()); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	refused(t, e, why)
	test.Check(t, e.Write([]byte("new")))
	holds(t, e, "new")
}

func TestAFolderInTheWay(t *testing.T) {
	folder, e := filled(t, "text")
	inner := folder.Below("entry").Entry("x.json")
	test.Check(t, inner.Write(nil))
	in := folder.Entry("entry")
	refused(t, in, "it is a folder")
	if in.Write(nil) == nil {
		t.Error("a folder was replaced")
	}
	below := cache.At(e.Path())
	refused(t, below.Entry("x.json"), "is a regular file, not a folder")
	if err := below.Check(); err == nil || below.Entry("x.json").Write(nil) == nil {
		t.Error("a file is a folder")
	}
}

func TestEntriesStayInTheirFolder(t *testing.T) {
	folder, _ := filled(t, "text")
	below := folder.Below("below")
	test.Check(t, below.Entry("x.json").Write(nil))
	refused(t, below.Entry("../entry.json"), "path escapes")
}

// Of too many entries that differ only in their hashes, those written first are removed, and nothing else.
func TestEntriesAreBounded(t *testing.T) {
	folder := fresh(t)
	entry := func(i int) cache.Entry {
		return folder.Hashed("kind-", binary.BigEndian.AppendUint64(nil, uint64(i)), ".json")
	}
	others := []cache.Entry{folder.Hashed("kinds-", make([]byte, 8), ".json"), folder.Hashed("kind-", make([]byte, 7), ".json"), folder.Entry("kind-of-mine.json")}
	for _, e := range others {
		test.Check(t, e.Write([]byte("other")))
	}
	past := time.Now().Add(-time.Hour)
	for i := range cache.MaxAlike {
		path := entry(i).Path()
		test.Check(t, errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, past, past.Add(time.Duration(-i)*time.Second))))
	}
	last := entry(cache.MaxAlike)
	test.Check(t, last.Write([]byte("last")))
	holds(t, last, "last")
	for _, e := range others {
		holds(t, e, "other")
	}
	kept := cache.MaxAlike*3/4 - 1
	holds(t, entry(kept-1), "")
	test.Is(t, test.ErrorOf(entry(kept).Read()), fs.ErrNotExist)
	if all, err := os.ReadDir(folder.Path()); err != nil || len(all) != kept+1+len(others) {
		t.Errorf("%d files, %v", len(all), err)
	}
}

// machine is a key of stores in the tests below.
type machine struct {
	Version int
	Devices []string
}

// A store holds what was put into it, for its kind and key, and nothing damaged.
func TestStore(t *testing.T) {
	folder := fresh(t)
	key := machine{1, []string{"a", "b"}}
	positive := func(all []int) bool { return len(all) > 0 && slices.Min(all) > 0 }
	s := cache.Remember(folder, "kind", key, positive)
	get := func(s cache.Store[[]int], want ...int) {
		t.Helper()
		if got, err := s.Get(); !slices.Equal(got, want) || err == nil != (want != nil) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	get(s)
	for _, value := range [][]int{{1, 2}, {3}} {
		test.Check(t, s.Put(value))
		get(s, value...)
	}
	get(cache.Remember(folder, "kind", machine{1, []string{"a", "b"}}, positive), 3)
	get(cache.Remember(folder, "other", key, positive))
	get(cache.Remember(folder, "kind", machine{2, key.Devices}, positive))
	get(cache.Store[[]int]{})
	text, err := os.ReadFile(s.Path())
	test.Check(t, err)
	for name, text := range map[string]string{
		"empty":          "",
		"cut off":        string(text[:len(text)-3]),
		"another form":   "[3]",
		"another key":    strings.Replace(string(text), `"a"`, `"c"`, 1),
		"not valid":      strings.Replace(string(text), "3", "-3", 1),
		"past 64 bits":   strings.Replace(string(text), "3", "1e30", 1),
		"no value":       strings.Replace(string(text), "value", "valve", 1),
		"more behind it": string(text) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			test.Check(t, os.WriteFile(s.Path(), []byte(text), 0o644))
			get(s)
		})
	}
}
