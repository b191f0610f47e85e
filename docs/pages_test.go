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

// root returns the folder of the module.
func root(t *testing.T) string { return test.Must(filepath.Abs(".."))(t) }

// shell runs the lines of a script and returns what they print. It gets what it
// needs from the modules that built this test: the proxy refuses all, as one that serves
// known modules alone does. MPI launchers may start more processes than there are cores, as root too.
func shell(t *testing.T, dir, script string, env ...string) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "forbidden", http.StatusForbidden)
	}))
	defer proxy.Close()
	c := exec.Command("sh", "-e", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY="+proxy.URL, "GOSUMDB=off", "GOWORK=off",
		"HALOX_CUDA=", "CUDA_VISIBLE_DEVICES=", // on CPU devices, as the page
		"PATH="+os.Getenv("PATH")+":"+root(t)+"/.mpi/mpich/bin:"+root(t)+"/.mpi/mpich/local/bin", // of make mpi
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", "OMPI_MCA_plm=isolated")
	c.Env = append(c.Env, env...)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s\n%v\n%s%s", script, err, out, errs.String())
	}
	return string(out)
}

// A reader who starts in an empty folder next to a clone, and does what pages say, gets the output that they show. The
// last program prints the same on GPUs, which the CPU emulates here.
func TestPrograms(t *testing.T) {
	for _, pages := range testdevices.Some(2, [][]string{
		{"tutorials/halo-exchange"}, {"tutorials/point-function"}, {"tutorials/ranks"}, {"how-to/own-kernels"},
		{"tutorials/shallow-water", "tutorials/several-processes"},
	}) {
		t.Run(filepath.Base(pages[0]), func(t *testing.T) {
			dir := t.TempDir()
			if _, err := testdevices.CPlusPlus(); err != nil && strings.Contains(read(t, pages[0]+".md"), "sweep.Check(") {
				t.Skip("SKIPPED: the program of the page needs a C++ compiler: ", err)
			}
			for _, page := range pages {
				dir = follow(t, read(t, page+".md"), dir)
			}
			if got := shell(t, dir, "gofmt -l ."); got != "" {
				t.Errorf("these programs are not formatted as gofmt does: %s", got)
			}
			on := regexp.MustCompile(`(?m)^on .*$`) // which devices
			want := on.ReplaceAllString(shell(t, dir, "go run ."), "")
			got := on.ReplaceAllString(shell(t, dir, "go run .", testdevices.Environment(t, 2)...), "")
			if got != want || got == "" {
				t.Errorf("on GPUs the program prints\n%s\non CPU devices\n%s", got, want)
			}
		})
	}
}

func TestFirstProgramImportsThreePackages(t *testing.T) {
	if n := strings.Count(blocks(read(t, "tutorials/halo-exchange.md"), "go")[0], "\t\"github.com/halox/halox/"); n == 0 || n > 3 {
		t.Errorf("the first program imports %d packages of halox, want 1 to 3", n)
	}
}

// follow does what a page says, in a folder, and returns the folder where it ends. Scripts are run; the block after one
// is what it prints. A block of Go goes to the file that is named last before it. The module replaces halox by the
// folder next to it; follow replaces it by root, whose packages the tests have compiled.
func follow(t *testing.T, page, dir string) string {
	t.Helper()
	times := regexp.MustCompile(`\t(?:[0-9.]+s|\(cached\))\n`) // of go test
	all := regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatchIndex(page, -1)
	from, scripts, programs, outputs, printed := 0, 0, 0, 0, ""
	for _, at := range all {
		text, language, block := page[from:at[0]], page[at[2]:at[3]], page[at[4]:at[5]]
		from = at[1]
		switch language {
		case "sh":
			scripts++
			if strings.Contains(block, "mpirun") && shell(t, dir, "mpirun -n 2 echo works 2>&1 || :") != "works\nworks\n" {
				t.Skip("SKIPPED: no mpirun works; make mpi gets one")
			}
			state := filepath.Join(t.TempDir(), "folder")
			printed = shell(t, dir, block+"\npwd >"+state)
			dir = strings.TrimSpace(read(t, state))
			if module := filepath.Join(dir, "go.mod"); strings.Contains(block, "go mod init") {
				if !strings.Contains(read(t, module), "replace github.com/halox/halox => ../halox\n") {
					t.Fatal("the module does not replace halox by the folder next to it")
				}
				shell(t, dir, "go mod edit -replace 'github.com/halox/halox="+root(t)+"'")
			}
		case "go":
			programs++
			names := regexp.MustCompile("`(\\w+\\.go)`").FindAllStringSubmatch(text, -1)
			if names == nil {
				t.Fatalf("the page does not say where this goes:\n%s", block)
			}
			test.Check(t, os.WriteFile(filepath.Join(dir, names[len(names)-1][1]), []byte(block), 0o644))
		case "":
			outputs++
			if times.ReplaceAllString(printed, "\n") != times.ReplaceAllString(block, "\n") {
				t.Errorf("the program prints\n%s\nthe page says\n%s", printed, block)
			}
		}
	}
	if scripts == 0 || programs == 0 || outputs == 0 {
		t.Fatalf("the page has %d scripts, %d programs and %d outputs", scripts, programs, outputs)
	}
	return dir
}

// The kernels of pages compile for a GPU too: the programs run on CPU devices here.
func TestKernelsOfPages(t *testing.T) {
	type data struct { // of the page about device ranks
		Numbers uint64
		Result  float64
	}
	found := 0
	for _, page := range append(under(t, "tutorials", ".md"), under(t, "how-to", ".md")...) {
		for _, program := range blocks(read(t, page), "go") {
			kernel := regexp.MustCompile("(?s)= `\n?([^`]*__global__[^`]*)`")
			for _, m := range kernel.FindAllStringSubmatch(program, -1) {
				found++
				source := kernels.Source{Name: filepath.Base(page) + ".cu", Text: m[1]}
				if strings.Contains(source.Text, "struct Data {") {
					source.Mirrors = []kernels.Mirror{{Name: "Data", Value: data{}}}
				}
				testdevices.Compile(t, source)
			}
		}
	}
	if found != 3 {
		t.Errorf("the pages have %d kernels", found)
	}
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

// The README fits into two minutes of reading, and its Go is of the programs of pages, which are run.
func TestREADME(t *testing.T) {
	text := read(t, "../README.md")
	if lines, words := strings.Count(text, "\n"), len(strings.Fields(text)); lines > 120 || words > 1200 {
		t.Errorf("the README has %d lines and %d words, more than 120 and 1200", lines, words)
	}
	programs := read(t, "tutorials/halo-exchange.md") + read(t, "tutorials/point-function.md")
	for _, block := range blocks(text, "go") {
		for line := range strings.Lines(block) {
			if !strings.Contains(programs, strings.TrimSpace(line)) {
				t.Errorf("no tutorial has %q", line)
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
	for _, m := range regexp.MustCompile(`\{"([a-z]+)", `).FindAllStringSubmatch(read(t, "../results/summary.go"), -1) {
		if !strings.Contains(read(t, "reference/norms.md"), "| `"+m[1]+"` |") {
			t.Errorf("the page of norms does not explain the line %s", m[1])
		}
	}
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
