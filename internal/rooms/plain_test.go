package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

// The packages that the Makefile keeps from the race detector start no goroutine and bind no library, nor do their tests.
func TestPlainPackages(t *testing.T) {
	for _, name := range listOf(t, "PLAIN") {
		files, err := filepath.Glob(filepath.Join("../..", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no files: %v", name, err)
		}
		for _, file := range files {
			if what := notPlain(parsedFile(t, file)); what != "" {
				t.Errorf("%s has %s, and the Makefile calls %s plain", file, what, name)
			}
		}
	}
	for source, want := range map[string]string{
		"package a\nfunc f() { go f() }":                                       "a go statement",
		"package a\nfunc f(w G) { w.Go(f) }":                                   "a call of Go",
		"package a\nimport \"C\"":                                              `import "C"`,
		"package a\nimport \"github.com/halox/halox/internal/cuda\"":           "a binding",
		"//go:build cgo\n\npackage a":                                          aConstraint,
		"//go:build !race\n\npackage a":                                        "a build constraint of the race detector",
		"package a\nimport \"strings\"\nfunc f() { strings.Fields(\"go f\") }": "",
	} {
		parsed := test.Must(parser.ParseFile(token.NewFileSet(), "a.go", source, parser.ParseComments))(t)
		if what := notPlain(parsed); what != want {
			t.Errorf("%q has %q, not %q", source, what, want)
		}
	}
}

// The Makefile tests without cgo the packages whose tests then differ: a file of them other than a test binds a
// library, or is for builds with cgo or without.
func TestPackagesThatDifferWithoutCgo(t *testing.T) {
	tested, differ := map[string]bool{}, map[string]bool{}
	eachFile(t, func(path string) {
		folder := filepath.Dir(path)
		if strings.HasSuffix(path, "_test.go") {
			tested[folder] = true
		} else if slices.Contains([]string{aConstraint, importOfC, aBinding}, notPlain(parsedFile(t, path))) {
			differ[folder] = true
		}
	})
	var want []string
	for folder := range differ {
		if tested[folder] {
			want = append(want, strings.TrimPrefix(filepath.ToSlash(folder), "../../"))
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(listOf(t, "NOCGO"))); !slices.Equal(got, want) {
		t.Errorf("the Makefile tests %v without cgo; those that differ are %v", got, want)
	}
}

// listOf is what the Makefile calls by a name.
func listOf(t *testing.T, name string) []string {
	t.Helper()
	makefile := test.Must(os.ReadFile("../../Makefile"))(t)
	list := regexp.MustCompile(`(?m)^` + name + ` *:= (.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.Fields(string(list[1]))
}

func parsedFile(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed := test.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))(t)
	return parsed
}

// What notPlain finds that differs without cgo.
const (
	aConstraint = "a build constraint of cgo"
	importOfC   = `import "C"`
	aBinding    = "a binding"
)

// notPlain says what in a file starts a goroutine, or differs without cgo; nothing where there is none.
func notPlain(file *ast.File) (what string) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			switch {
			case !strings.HasPrefix(c.Text, "//go:build "):
			case regexp.MustCompile(`\bcgo\b`).MatchString(c.Text):
				return aConstraint
			case regexp.MustCompile(`\brace\b`).MatchString(c.Text):
				return "a build constraint of the race detector"
			}
		}
	}
	bindings := regexp.MustCompile(`/internal/(cuda|dl|nvrtc|mpi|nccl|cufft)"$`)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			if n.Path.Value == `"C"` {
				what = importOfC
			} else if bindings.MatchString(n.Path.Value) {
				what = aBinding
			}
		case *ast.GoStmt:
			what = "a go statement"
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				what = "a call of Go"
			}
		}
		return what == ""
	})
	return what
}
