// Package docs_test does what the pages here say.
package docs_test

import (
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
)

// blocks returns the code blocks of a page in a language, in order.
func blocks(page, language string) (found []string) {
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text := test.Must(os.ReadFile(file))(t)
	return string(text)
}

// shell runs the lines of a script and returns what they print. It gets what it
// needs from the modules that built this test: the proxy refuses all, as one that serves
// known modules alone does.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "forbidden", http.StatusForbidden)
	}))
	defer proxy.Close()
	c := exec.Command("sh", "-e", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY="+proxy.URL, "GOSUMDB=off", "GOWORK=off",
		"HALOX_CUDA=", "CUDA_VISIBLE_DEVICES=") // on host devices, as the page
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s\n%v\n%s%s", script, err, out, errs.String())
	}
	return string(out)
}

// A reader who starts in an empty folder next to a clone and does what a page says gets the output that it shows.
func TestPrograms(t *testing.T) {
	root := test.Must(filepath.Abs(".."))(t)
	for page, folder := range map[string]string{"halo-exchange": "heat", "point-function": "membrane", "ranks": "total"} {
		t.Run(folder, func(t *testing.T) { follow(t, read(t, "tutorials/"+page+".md"), root, folder) })
	}
}

// follow does what a page says in a new folder of that name. The module replaces halox by the folder next to it; follow
// replaces it by root, whose packages the tests have compiled.
func follow(t *testing.T, page, root, folder string) {
	scripts, programs, outputs := blocks(page, "sh"), blocks(page, "go"), blocks(page, "")
	if len(scripts) != 2 || len(programs) != 1 || len(outputs) != 1 {
		t.Fatalf("the page has %d scripts, %d programs and %d outputs", len(scripts), len(programs), len(outputs))
	}
	dir := t.TempDir()
	shell(t, dir, scripts[0])
	dir = filepath.Join(dir, folder)
	if !strings.Contains(read(t, filepath.Join(dir, "go.mod")), "replace github.com/halox/halox => ../halox\n") {
		t.Fatal("the module does not replace halox by the folder next to it")
	}
	shell(t, dir, "go mod edit -replace 'github.com/halox/halox="+root+"'")
	test.Check(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(programs[0]), 0o644))
	if got := shell(t, dir, scripts[1]); got != outputs[0] {
		t.Errorf("the program prints\n%s\nthe page says\n%s", got, outputs[0])
	}
	if got := shell(t, dir, "gofmt -l ."); got != "" {
		t.Errorf("the program is not formatted as gofmt does")
	}
}

// The kernel of a page compiles for a GPU too, with what halox adds to it: the page's program runs on host devices here.
func TestKernelOfRanks(t *testing.T) {
	kernel := regexp.MustCompile("(?s)= `\n?(#include \"ranks.cuh\".*?)`").FindStringSubmatch(blocks(read(t, "tutorials/ranks.md"), "go")[0])
	if kernel == nil {
		t.Fatal("the tutorial has no kernel")
	}
	type data struct { // of the page
		Numbers uint64
		Result  float64
	}
	testdevices.Compile(t, kernels.Source{Name: "total.cu", Text: kernel[1], Mirrors: []kernels.Mirror{{Name: "Data", Value: data{}}}})
}

// under returns the files in a folder, and in those below it, whose names end so.
func under(t *testing.T, dir, end string) (found []string) {
	t.Helper()
	test.Check(t, filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, end) {
			found = append(found, file)
		}
		return err
	}))
	return found
}

// anchors returns the anchors that the headings of a page have on a forge and on the site.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		heading := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return found
}

// All pages link to files and headings that are there, and show pictures that are there. The sources that the page of
// the architecture names are there too.
func TestLinks(t *testing.T) {
	sources := regexp.MustCompile("`([a-z0-9_/]+/[a-z0-9_]+\\.(?:go|cu|cuh))`")
	for _, m := range sources.FindAllStringSubmatch(read(t, "dev/architecture.md"), -1) {
		file := m[1]
		if strings.HasPrefix(file, "cu/") {
			file = "kernels/" + file
		}
		if _, err := os.Stat(filepath.Join("..", file)); err != nil {
			t.Error(err)
		}
	}
	code := regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]+`")
	pages := append(under(t, ".", ".md"), "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md")
	if len(pages) < 15 {
		t.Fatalf("%d pages", len(pages))
	}
	for _, page := range pages {
		text := code.ReplaceAllString(read(t, page), "")
		if strings.Contains(text, "{{") {
			t.Errorf("%s has the query of a template", page)
		}
		for _, m := range regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(text, -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if m[2] != "" && !anchors(read(t, target))[m[2]] {
				t.Errorf("%s: %s has no heading #%s", page, target, m[2])
			}
		}
	}
}

// The page of environment variables names all variables of the code, and no others. The messages on the page of errors
// are in the code: of each, the longest part without "...".
func TestNamesOfTheCode(t *testing.T) {
	var code strings.Builder
	for _, file := range under(t, "..", ".go") {
		if !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/.") && !strings.Contains(file, "internal/test") {
			code.WriteString(read(t, file))
		}
	}
	first := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	var got []string
	for _, m := range first.FindAllStringSubmatch(read(t, "reference/environment.md"), -1) {
		got = append(got, m[1])
	}
	want := map[string]bool{}
	for _, m := range regexp.MustCompile(`"HALOX_[A-Z]+"`).FindAllString(code.String(), -1) {
		want[strings.Trim(m, `"`)] = true
	}
	if sorted := slices.Sorted(maps.Keys(want)); !slices.Equal(sorted, slices.Sorted(slices.Values(got))) {
		t.Errorf("the page has %q, the code %q", got, sorted)
	}
	messages := first.FindAllStringSubmatch(read(t, "how-to/troubleshoot.md"), -1)
	for _, m := range messages {
		parts := strings.Split(strings.ReplaceAll(m[1], "rank 1", "..."), "...")
		longest := slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
		if !strings.Contains(code.String(), strings.Trim(longest, " ")) {
			t.Errorf("no message has %q of %q", longest, m[1])
		}
	}
	if len(messages) < 12 {
		t.Errorf("%d messages", len(messages))
	}
}
