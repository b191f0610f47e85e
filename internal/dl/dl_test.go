package dl_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/halox/halox/internal/dl"
	"github.com/halox/halox/internal/test"
)

func TestCall(t *testing.T) {
	libc, err := dl.Open("libc.so.6", dl.Now)
	if errors.Is(err, dl.ErrUnsupported) {
		t.Skip("SKIPPED: ", err)
	}
	test.Check(t, err)
	at, missing := libc.Table([]string{"abs", "halox_nowhere", "toupper"})
	if len(at) != 3 || !slices.Equal(missing, []string{"halox_nowhere"}) {
		t.Fatalf("found %x, missing %q", at, missing)
	}
	minus7 := -7
	if got := dl.Call(at[0], dl.Args{uintptr(minus7)}); got != 7 {
		t.Errorf("abs(-7) = %d", got)
	}
	if got := dl.Call(at[2], dl.Args{'h'}); got != 'H' {
		t.Errorf("toupper('h') = %c", got)
	}
	if _, err := dl.Open("/nowhere/lib.so", dl.Now); err == nil || errors.Is(err, dl.ErrUnsupported) {
		t.Errorf("a library that does not exist: %v", err)
	}
}

// A truncated library is an error, and does not end the process.
func TestLibrariesThatAreCutOff(t *testing.T) {
	if _, err := dl.Open("libc.so.6", dl.Now); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	path := regexp.MustCompile(`/\S*/libc[.]so\S*`).Find(maps)
	if err != nil || path == nil {
		t.Skip("SKIPPED: nothing says where libc is: ", err)
	}
	whole, err := os.ReadFile(string(path))
	if err != nil || dl.Check(string(path)) != nil {
		t.Fatal(err, dl.Check(string(path)))
	}
	for _, c := range map[string]struct {
		bytes []byte
		says  string
	}{
		"headers alone":    {whole[:4096], "is truncated"},
		"half":             {whole[:len(whole)/2], "is truncated"},
		"all but one byte": {whole[:len(whole)-1], "is truncated"},
		"half a header":    {whole[:32], "is truncated"},
		"empty":            {nil, "too short"},
		"not a library":    {[]byte("not a library, but as long as the header of one is, or a little longer"), "invalid ELF"},
	} {
		file := filepath.Join(t.TempDir(), "lib.so")
		test.Check(t, os.WriteFile(file, c.bytes, 0o600))
		test.Says(t, test.ErrorOf(dl.Open(file, dl.Now)), c.says)
	}
}
