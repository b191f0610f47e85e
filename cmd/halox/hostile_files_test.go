package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/halox/halox/internal/test"
)

// A cache that others may write to is not used; where nothing can be kept, in no folder or in one that cannot be written, the run goes
// on. Each is told once.
func TestCachesThatAreNotUsed(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	config, shared := write(t, "c.yaml", small), filepath.Join(t.TempDir(), "cache")
	test.Check(t, errors.Join(os.Mkdir(shared, 0o755), os.Chmod(shared, 0o777)))
	told := map[string]string{
		shared:        "is not used: others than its owner may write to it",
		"/proc/cache": "nothing new is stored in the cache /proc/cache: open /proc/",
		"":            "nothing is stored for the next run: the user has no folder for caches; set HALOX_CACHE",
	}
	if full, ok := fullDisk(t); ok {
		told[full] = "no space left on device"
	}
	for folder, says := range told {
		t.Setenv("HALOX_CACHE", folder)
		t.Setenv("XDG_CACHE_HOME", "")
		t.Setenv("HOME", "")
		if code, out, errs := cli("plan", config); code != 0 || strings.Count(errs, says) != 1 {
			t.Errorf("%q: exit %d: %s%s", folder, code, out, errs)
		}
	}
	if files, err := os.ReadDir(shared); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// fullDisk returns a folder on a disk without space, if this user may mount one.
func fullDisk(t *testing.T) (folder string, ok bool) {
	t.Helper()
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "none", disk).CombinedOutput(); err != nil {
		t.Logf("no full disk: %v: %s", err, out)
		return "", false
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	folder = filepath.Join(disk, "cache")
	test.Check(t, os.Mkdir(folder, 0o755))
	_ = os.WriteFile(filepath.Join(disk, "fill"), make([]byte, 1<<17), 0o644) // as much as there is space for
	return folder, true
}

// What a foreign file says cannot steer a terminal, and is drawn as a whole SVG.
func TestForeignTexts(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const hostile = `\u0000\u001b[31m\u202e\u0085\r` + "\u202e\u009b"
	for _, args := range [][]string{
		{"run", write(t, "c.yaml", small), "-q", "--record", at("run.json"), "--trace", at("trace.json")},
		{"bench", "exchange", "--backend", "host", "--devices", "2", "--points", "8", "--paths", "staged,peer", "--record", at("bench.json")},
	} {
		if code, out, errs := cli(args...); code != 0 {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
	}
	for _, name := range []string{"run.json", "bench.json", "trace.json"} {
		data := test.Must(os.ReadFile(at(name)))(t)
		text := string(data)
		for _, word := range []string{"two-stream", "assisted", "staged", "peer", "host ", "sweep ", "amd64", "heat"} {
			text = strings.ReplaceAll(text, `"`+word, `"`+word+hostile)
		}
		if text == string(data) {
			t.Fatalf("%s has none of the words", name)
		}
		test.Check(t, os.WriteFile(at(name), []byte(text), 0o644))
	}
	for _, args := range [][]string{
		{"results", at("run.json"), at("bench.json")},
		{"results", "--format", "csv", at("bench.json")},
		{"results", "--format", "markdown", at("bench.json")},
		{"bench", "exchange", "--backend", "host", "--resume", at("bench.json")},
		{"plot", at("bench.json"), "-o", at("bench.svg")},
		{"plot", at("trace.json"), "-o", at("trace.svg")},
		{"plot", at("trace.json"), "-o", at("trace.json.svg"), "--kind", "pack"},
	} {
		_, out, errs := cli(args...)
		if i := strings.IndexFunc(out+errs, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q prints %q", args, (out + errs)[i:])
		}
	}
	for _, name := range []string{"bench.svg", "trace.svg"} {
		checkXML(t, at(name))
	}
	odd := at("odd\x01name.json")
	if err := os.Rename(at("bench.json"), odd); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	cli("plot", odd, odd, "-o", at("odd.svg"))
	checkXML(t, at("odd.svg"))
}

// checkXML checks that a file is well-formed XML.
func checkXML(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	for d := xml.NewDecoder(file); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}
